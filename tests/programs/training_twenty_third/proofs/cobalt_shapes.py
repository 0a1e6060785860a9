import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
FIX = ("grad_input = grad_output\n", "grad_input = grad_output.clone()\n")
wrong, fixed = run("cobalt_shapes"), run("cobalt_shapes", FIX)


def against_plain(g):
    torch.manual_seed(0)
    net, x, y = g["ShapeNet"](), g["train_x"][:50], g["train_y"][:50]
    F.cross_entropy(net(x), y).backward()
    own = flat_grad(net).clone()
    for block in net.blocks:
        block.act = torch.nn.LeakyReLU(0.05)
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
    return rel(own, flat_grad(net))


w, f = against_plain(wrong), against_plain(fixed)
print(w, f, wrong["test_acc"], fixed["test_acc"], wrong["history"][-1], fixed["history"][-1])
assert w > 0.2 and f < 1e-4
