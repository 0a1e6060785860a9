import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("dist.rsample()", "dist.sample()")
bad = run("winch_pilot", capture=("main",))
good = run("winch_pilot", fix, capture=("main",))
late_bad, late_good = sum(bad["returns_log"][-10:]) / 10, sum(good["returns_log"][-10:]) / 10
early_bad = sum(bad["returns_log"][:10]) / 10
print("return early/late as written", early_bad, late_bad, "repaired", late_good)
assert late_good > late_bad + 20
assert late_bad < early_bad + 5  # the policy as written never improves


def mean_grad(glob):
    torch.manual_seed(0)
    policy = glob["GaussianPolicy"](3, 1)
    obs = torch.randn(256, 3)
    action, logp, _ = policy.act(obs)
    (logp * torch.randn(256)).mean().backward()
    return flat_grad(policy.mean).norm().item()


a, b = mean_grad(bad), mean_grad(good)
print("gradient of the mean network", a, b)
assert a < 1e-5 and b > 1e-2
