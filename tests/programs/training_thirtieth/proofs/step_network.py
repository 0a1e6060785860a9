import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = ("self.step = nn.Parameter(2 * x.detach().abs().mean() / math.sqrt(self.high))",
       "self.step.data.copy_(2 * x.detach().abs().mean() / math.sqrt(self.high))")
note = ("            self.ready = True\n", "            self.ready = True\n            self.first = self.step.item()\n")
a, b = run("step_network", note), run("step_network", fix, note)


def quantizers(r):
    return [m for m in r["model"].modules() if type(m).__name__ == "StepQuantizer"]


for q in quantizers(a):
    assert not in_optimizer(q.step, a["optimizer"])
    assert q.step.requires_grad and q.step.grad.abs() > 0      # it gets a gradient, accumulated over all steps
    assert q.step.item() == q.first                            # and never moves
    print("as written", q.first, "->", q.step.item())
for p in a["optimizer"].param_groups[1]["params"]:
    assert p.item() == 1.0 and p.grad is None                  # what the optimizer has is the old one
for q in quantizers(b):
    assert in_optimizer(q.step, b["optimizer"]) and abs(q.step.item() - q.first) > 0.1 * q.first
    print("repaired  ", q.first, "->", q.step.item())


def loss(r):
    torch.manual_seed(5)
    images, labels = r["make_blobs"](3000)
    with torch.no_grad():
        return torch.nn.functional.cross_entropy(r["model"](images), labels).item()


la, lb = loss(a), loss(b)
print("held-out loss as written", la, "repaired", lb)
assert lb < la
