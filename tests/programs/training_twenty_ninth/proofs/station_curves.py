import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("    start = model.state_dict()\n", "    start = copy.deepcopy(model.state_dict())\n")
ZERO = ("META_LR = 0.5", "META_LR = 0.0")


def one_step(*edits):
    p = run("station_curves", *edits, capture=("reptile_step",), as_main=False)
    torch.manual_seed(0)
    model = p["CurveNet"]()
    before = flat(model)
    station = p["Station"](torch.Generator().manual_seed(1))
    sys_profile = p["reptile_step"](model, station, 0.0)
    return rel(flat(model), before)


a, b = one_step(), one_step(FIX)
print("move of the weights in a meta step of rate 0: as written", a, "repaired", b)
assert a > 1e-2 and b == 0.0

r = run("station_curves", capture=("reptile_step",))
loc = r.locals["reptile_step"]
assert all(loc["start"][k].data_ptr() == loc["adapted"][k].data_ptr() for k in loc["start"])
z = run("station_curves", ZERO)
assert rel(flat(r["model"]), flat(z["model"])) < 1e-6  # the meta rate has no effect at all
f = run("station_curves", FIX)
print("error: as written", r["error"], "repaired", f["error"])
assert rel(flat(f["model"]), flat(r["model"])) > 0.05
assert f["error"] < r["error"]
