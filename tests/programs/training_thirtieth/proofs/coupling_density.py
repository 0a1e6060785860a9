import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

repairs = (
    ("self.bias = nn.Parameter(-mean)", "self.bias.data.copy_(-mean)"),
    ("self.log_scale = nn.Parameter(-torch.log(std + 1e-6))", "self.log_scale.data.copy_(-torch.log(std + 1e-6))"),
)


def norms(r):
    return [m for m in r["flow"].modules() if isinstance(m, r["ActNorm"])]


def actnorm_values(r):
    return torch.cat([torch.cat([m.bias, m.log_scale]).detach() for m in norms(r)])


short = ("for step in range(STEPS):", "for step in range(1):")
full, full_repaired = run("coupling_density"), run("coupling_density", *repairs)
for m in norms(full):
    assert not in_optimizer(m.bias, full["optimizer"]) and not in_optimizer(m.log_scale, full["optimizer"])
    assert m.bias.requires_grad and m.bias.grad is not None
for m in norms(full_repaired):
    assert in_optimizer(m.bias, full_repaired["optimizer"]) and in_optimizer(m.log_scale, full_repaired["optimizer"])

first = run("coupling_density", short)
assert torch.equal(actnorm_values(first), actnorm_values(full))  # 150 steps and not one change
first_repaired = run("coupling_density", short, *repairs)
assert (actnorm_values(first_repaired) - actnorm_values(full_repaired)).abs().max() > 0.1

held = sum(p.numel() for g in full["optimizer"].param_groups for p in g["params"] if p.grad is None)
assert held == 2 * full["DIM"] * full["BLOCKS"]  # the optimizer holds that many dead entries
assert full["test_nll"] > full_repaired["test_nll"] + 0.7
