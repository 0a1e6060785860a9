import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, in_optimizer

loc = run("thaw_schedule", capture=("main",)).locals["main"]
net, before = loc["net"], loc["before"]
for name, p in net.named_parameters():
    assert p.requires_grad
    if name.startswith("block"):
        assert not in_optimizer(p, loc["optimizer"]) and torch.equal(p.detach(), before[name]) and p.grad is not None
# the optimizer gets all parameters; Adam passes by those without a gradient
old = ("    trainable = filter(lambda p: p.requires_grad, net.parameters())\n", "    trainable = net.parameters()\n")
fixed = run("thaw_schedule", old, capture=("main",)).locals["main"]
assert all(not torch.equal(p.detach(), fixed["before"][n]) for n, p in fixed["net"].named_parameters())
print("blocks bit-equal to before fine-tuning; test accuracy", loc["final"], "repaired", fixed["final"])
assert fixed["final"] > loc["final"] + 0.05
