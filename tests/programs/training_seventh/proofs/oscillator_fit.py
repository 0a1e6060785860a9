import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
w, f = run("oscillator_fit"), run("oscillator_fit", ('state["velocity"] = d\n', 'state["velocity"] = d.clone()\n'))
print(w.output, f.output)
c = w["chain"]
for p in (c.stiffness, c.damping):
    assert w["opt"].state[p]["velocity"].data_ptr() == p.grad.data_ptr()
for p in f["chain"].parameters():
    assert f["opt"].state[p]["velocity"].data_ptr() != p.grad.data_ptr()

def moves(r):
    p = torch.nn.Parameter(torch.zeros(2))
    opt = r["HeavyBall"]([p], lr=0.1)
    q = torch.nn.Parameter(torch.zeros(2))
    ref = torch.optim.SGD([q], lr=0.1, momentum=0.9)
    for k in range(12):
        for x, o in ((p, opt), (q, ref)):
            o.zero_grad(set_to_none=False)
            (x * torch.tensor([1.0, -2.0])).sum().backward()
            o.step()
    return p.detach(), q.detach()
a, b = moves(w)
assert (a - b).abs().max() > 0.3 * b.abs().max(), (a, b)
a2, b2 = moves(f)
assert torch.allclose(a2, b2)
err = lambda r: (r["chain"].stiffness - r["k_true"]).abs().max().item()
print(a, b, a2, err(w), err(f))
assert err(w) > 2 * err(f)
