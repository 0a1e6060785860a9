import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

EVAL = ("    model.train()\n", "    model.train()\n    if name == 'b':\n        model.trunk.eval()\n")
SNAP = ("model.add_head(\"b\"", "import copy\nkept = copy.deepcopy(model.trunk)\nmodel.add_head(\"b\"")
written, repaired = run("pump_sites", SNAP), run("pump_sites", SNAP, EVAL)


def moved(r):
    old, new = r["kept"].state_dict(), r["model"].trunk.state_dict()
    return {n for n in old if not torch.equal(old[n], new[n])}


# The parameters of the frozen trunk stay, the running statistics do not.
assert moved(written) and all("running" in n or "num_batches" in n for n in moved(written))
assert not moved(repaired)
print(written["a_alone"], written["a_final"], repaired["a_final"], written["b_final"], repaired["b_final"])
assert written["a_alone"] == repaired["a_alone"]
assert written["a_final"] < written["a_alone"] - 0.1
assert repaired["a_final"] == repaired["a_alone"]
assert repaired["b_final"] > 0.8
