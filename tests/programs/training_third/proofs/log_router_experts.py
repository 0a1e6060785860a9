import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch, torch.nn.functional as F
from proofkit import run
N = "log_router_experts"
def task_gradient(*edits):
    r = run(N, *edits)
    m, (x, y) = r["model"], r["data"]
    g = torch.autograd.grad(F.cross_entropy(m(x), y), [l.router.weight for l in m.layers])
    return [t.norm().item() for t in g]
bad = task_gradient()
good = task_gradient(("        top = top / top.sum(dim=-1, keepdim=True)\n", ""))
assert max(bad) < 1e-6 and min(good) > 1e-4, (bad, good)
print(f"proved: {N}")
