import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "sensor_sites"
FIX = ("name: p.detach() for", "name: p.detach().clone() for")

def look(*edits):
    m = run(NAME, *edits, capture=("main",)).locals["main"]
    model, cons = m["model"], m["consolidation"]
    shared = [anchor[n].data_ptr() == p.data_ptr() for anchor, _ in cons.terms for n, p in model.named_parameters()]
    return shared, cons.penalty(), m["table"], m["final"]

s0, p0, t0, f0 = look()
s1, p1, t1, f1 = look(FIX)
print("penalty at the end", p0.item(), p1.item(), "first site", [r[0] for r in t0], [r[0] for r in t1], "mean", f0, f1)
assert all(s0) and not any(s1)
assert p0.item() == 0.0 and p1.item() > 0.0
# without the whole penalty the run as written is the same
s2, p2, t2, f2 = look(("loss = loss + consolidation.penalty()", "pass"))
assert t2 == t0
assert t1[-1][0] > t0[-1][0] + 0.1 and f1 > f0 + 0.03
