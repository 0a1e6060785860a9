import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

torch.set_num_threads(1)
LOG = [("    improve(pilot, flat_states, flat_actions, advantages)\n",
        "    old = pilot(flat_states); old = Normal(old.loc.detach(), old.scale.detach())\n"
        "    trial = improve(pilot, flat_states, flat_actions, advantages)\n"
        "    log.append((trial, kl_divergence(old, pilot(flat_states)).sum(-1).mean().item()))\n"),
       ("pilot = Pilot()\n", "pilot = Pilot()\nlog = []\n"),
       ("import torch\n", "import copy\nimport torch\n")]
REPAIR = ("anchor = pilot.state_dict()", "anchor = copy.deepcopy(pilot.state_dict())")

written = run("natural_steps", *LOG, capture=("improve",))
repaired = run("natural_steps", *LOG, REPAIR, capture=("improve",))

# The snapshot that a rejected trial is undone with is the memory of the weights themselves.
for program, shares in ((written, True), (repaired, False)):
    inside = program.locals["improve"]
    for name, p in inside["pilot"].named_parameters():
        assert (inside["anchor"][name].data_ptr() == p.data_ptr()) == shares

limit = written["MAX_KL"]
print("as written", [(t, round(k, 4)) for t, k in written["log"]])
print("repaired  ", [(t, round(k, 4)) for t, k in repaired["log"]])
# Repaired: no update passes the limit, and one that finds no step leaves the policy where it was.
assert all(k <= limit * 1.001 for _, k in repaired["log"])
assert any(t > 0 for t, _ in repaired["log"])
# As written: no trial after a rejected one comes back inside, and all rejected steps stay in the weights.
over = [k for t, k in written["log"] if t == -1 and k > 2 * limit]
assert len(over) >= 3 and not any(t > 0 for t, _ in written["log"])
