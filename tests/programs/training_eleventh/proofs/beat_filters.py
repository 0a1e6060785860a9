import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch
import torch.nn.functional as F

a = run("beat_filters")
net, x, y = a["net"], a["x_train"][:64], a["y_train"][:64]


def reference(x):
    h = F.relu(x.unfold(1, 9, 2) @ net.weight.t() + net.bias)
    return net.out(torch.cat([h.amax(1), h.mean(1)], dim=1))


g = torch.autograd.grad(F.cross_entropy(net(x), y), [net.weight, net.bias])
r = torch.autograd.grad(F.cross_entropy(reference(x), y), [net.weight, net.bias])
ratios = [(p.norm() / q.norm()).item() for p, q in zip(g, r)]
print("hand-written / autograd gradient norm:", ratios)
b = run("beat_filters", ("-1) / n\n", "-1)\n"), ("flat.sum(0) / n", "flat.sum(0)"))
print("test accuracy as is", a["test_accuracy"], "repaired", b["test_accuracy"])
assert all(abs(s * 64 - 1) < 1e-3 for s in ratios)
assert b["test_accuracy"] > a["test_accuracy"] + 0.02
