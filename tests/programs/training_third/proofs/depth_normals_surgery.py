import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, rel
N = "depth_normals_surgery"
f = lambda g: torch.cat([t.flatten() for t in g])
def look(*edits):
    r = run(N, *edits)
    m, s, (x, target) = r["model"], r["surgery"], r["data"]
    losses = list(r["task_losses"](m(x), target).values())
    true = [f(torch.autograd.grad(l, s.shared, retain_graph=True)) for l in losses]
    s.optimizer.zero_grad()
    got = [f(g) for g in s.collect(losses)]
    return m, true, got
m1, true, got = look()
assert torch.equal(got[0], got[1]) and torch.equal(got[1], got[2]) and rel(got[0], true[0]) > 0.5
m2, true, got = look(("grads.append([p.grad for p in self.shared])", "grads.append([p.grad.clone() for p in self.shared])"))
assert all(rel(a, b) < 1e-5 for a, b in zip(got, true))
assert rel(flat(m1), flat(m2)) > 0.01
print(f"proved: {N}")
