import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

written = run("molecule_forces")
fixed = run("molecule_forces", ("retain_graph=True", "create_graph=True"))

# the force term has no graph, so its weight changes nothing; in the repaired program it has one
for result, connected in ((written, False), (fixed, True)):
    species, positions, energy, force = (t[:16] for t in result["train"])
    grads = []
    for rho in (0.0, 1000.0):
        torch.manual_seed(3)
        model = result["Potential"]()
        e, f = model(species, positions)
        assert f.requires_grad is connected
        (F.mse_loss(e, energy) + rho * F.mse_loss(f, force)).backward()
        grads.append(flat_grad(model))
    assert (rel(grads[1], grads[0]) > 0.1) if connected else torch.equal(*grads)

# and the whole run is the same whatever the weight of the force term is
other = run("molecule_forces", ("rho=10.0", "rho=1000.0"))
assert torch.equal(flat(written["model"]), flat(other["model"]))

w, f = (r["evaluate"](r["model"], r["valid"])[1] for r in (written, fixed))
assert w > 2 * f, (w, f)
