import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import numpy as np
import torch

bad = run("pointmass_ddpg")
good = run("pointmass_ddpg", ("            tp.lerp_(p, TAU)\n", "            tp.lerp_(p, TAU)\n        for tb, b in zip(target.buffers(), source.buffers()):\n            tb.copy_(b)\n"))
ct, c = bad["critic_target"], bad["critic"]
print("target stats", ct.bn.running_mean, ct.bn.running_var, "online", c.bn.running_mean, c.bn.running_var)
assert torch.equal(ct.bn.running_mean, torch.zeros(2)) and torch.equal(ct.bn.running_var, torch.ones(2))
assert int(ct.bn.num_batches_tracked) == 0 and c.bn.running_mean.abs().max() > 1
b, g = np.mean(bad["scores"]), np.mean(good["scores"])
print("return", b, "repaired", g)
assert g > -6 and b < g - 20
