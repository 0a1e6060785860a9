import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat

r = run("argon_potential", capture=("main", "train"))
assert not r.locals["train"]["force_loss"].requires_grad
assert r.locals["train"]["energy_loss"].requires_grad
# the weight of the force loss does not matter at all
none = run("argon_potential", ("FORCE_WEIGHT = 10.0", "FORCE_WEIGHT = 0.0"), capture=("main",))
same = torch.equal(flat(r.locals["main"]["model"]), flat(none.locals["main"]["model"]))
print("weights with FORCE_WEIGHT 10 and 0 are identical:", same)
assert same
fixed = run("argon_potential", ("retain_graph=True", "create_graph=True"), capture=("main",))
a, b = r.locals["main"]["force_mae"], fixed.locals["main"]["force_mae"]
print("force MAE as written", a, "with create_graph", b)
assert b < 0.7 * a
