import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "atom_clusters"
FIX = ("positions, retain_graph=True)", "positions, create_graph=True)")

def look(*edits):
    m = run(NAME, *edits, capture=("main",)).locals["main"]
    return m["force_loss"].requires_grad, m["force_error"], m["energy_error"], [p.clone() for p in m["model"].parameters()]

r0, f0, e0, w0 = look()
r1, f1, e1, w1 = look(FIX)
r2, f2, e2, w2 = look(("FORCE_WEIGHT = 10.0", "FORCE_WEIGHT = 0.0"))
print("force term has a graph", r0, r1, "force RMSE", f0, f1, "energy RMSE", e0, e1)
assert not r0 and r1
assert all(torch.equal(a, b) for a, b in zip(w0, w2))  # as written, the weight of the force term changes nothing
assert f1 < 0.6 * f0
