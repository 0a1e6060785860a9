import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

a = run("moon_flow")
masks = [c.mask for c in a["flow"].couplings]
assert len({m.data_ptr() for m in masks}) == 1          # one storage for all six layers
with torch.no_grad():
    z = a["test"]
    for c in a["flow"].couplings:
        z, _ = c(z)
same = (z == a["test"]).all(0)
assert same.sum() == 2, same                             # two of four coordinates are never moved
b = run("moon_flow", ("Coupling(dim, hidden, mask)", "Coupling(dim, hidden, mask.clone())"))
with torch.no_grad():
    z = b["test"]
    for c in b["flow"].couplings:
        z, _ = c(z)
assert not (z == b["test"]).all(0).any()
print("nll", a["nll"], "repaired", b["nll"])
assert b["nll"] < a["nll"] - 0.5
