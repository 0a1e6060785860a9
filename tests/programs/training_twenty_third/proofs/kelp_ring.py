import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("retain_graph=True,\n", "retain_graph=True, create_graph=True,\n")
bad, good = run("kelp_ring"), run("kelp_ring", fix)


def slope(glob):
    torch.manual_seed(1)
    real, fake = glob["sample_ring"](1000), glob["generator"].sample(1000).detach()
    return glob["gradient_penalty"](glob["critic"], real, fake)


a, b = slope(bad), slope(good)
print("penalty at the end", a.item(), b.item(), "differentiable", a.requires_grad, b.requires_grad)
print(bad["near"], bad["modes"], good["near"], good["modes"])
assert not a.requires_grad and b.requires_grad  # the penalty as written is a constant for the critic
assert a.item() > 10 * b.item() and b.item() < 0.5
# the critic's update is the same whatever the weight of the penalty is
free = run("kelp_ring", ("gp_weight: float = 10.0", "gp_weight: float = 0.0"))
d = max((p - q).abs().max().item() for p, q in zip(bad["critic"].parameters(), free["critic"].parameters()))
print("difference to weight 0", d)
assert d == 0.0
