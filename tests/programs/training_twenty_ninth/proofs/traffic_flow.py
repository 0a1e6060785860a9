import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("        grad_output[(x < 0.0) | (x > ctx.cap)] = 0.0\n        return grad_output, None",
       "        grad_input = grad_output.clone()\n        grad_input[(x < 0.0) | (x > ctx.cap)] = 0.0\n        return grad_input, None")
REF = ("BoundedReLU.apply(h, self.cap)", "h.clamp(0.0, self.cap)")


def grads(*edits):
    p = run("traffic_flow", *edits, as_main=False)
    torch.manual_seed(0)
    net = p["FlowNet"]()
    x, y = torch.randn(16, p["SENSORS"], p["WINDOW"]), torch.randn(16, p["SENSORS"])
    loss = torch.nn.functional.smooth_l1_loss(net(x), y)
    loss.backward()
    return loss.item(), flat_grad(net)


(la, a), (lf, f), (lr, r) = grads(), grads(FIX), grads(REF)
print("error of the gradient: as written", rel(a, r), "repaired", rel(f, r))
assert la == lf == lr and rel(f, r) < 1e-5 and rel(a, r) > 0.2

# one block: the gradient of its input on the skip path must be whole
p = run("traffic_flow", as_main=False)
x = torch.randn(50, requires_grad=True)
w = torch.randn(50)
((x + p["BoundedReLU"].apply(-x.abs() - 1, 6.0)) * w).sum().backward()
assert x.grad.abs().max() == 0  # it should be w: the bounded branch is inactive, the skip is the identity
w_, f_ = run("traffic_flow", capture=("evaluate",)), run("traffic_flow", FIX, capture=("evaluate",))
print(w_.output, f_.output)
assert f_.locals["evaluate"]["error"] < w_.locals["evaluate"]["error"]
