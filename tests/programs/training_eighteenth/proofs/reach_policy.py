import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("reach_policy")
good = run("reach_policy", ("dist.rsample()", "dist.sample()"))
print("bad", bad["start"], bad["final"], "good", good["final"])


def mean_grad(r):
    p = r["policy"]
    obs, lp, rew = r["rollout"](r["env"], p)
    p.zero_grad()
    ret = r["discounted"](rew)
    (-(lp * (ret - ret.mean())).mean()).backward()
    return p.mu.weight.grad.norm().item()


gb, gg = mean_grad(bad), mean_grad(good)
print("grad norm of the mean's layer", gb, gg)
assert gb < 1e-4 and gg > 1e-2
assert good["final"] > bad["final"] + 2
