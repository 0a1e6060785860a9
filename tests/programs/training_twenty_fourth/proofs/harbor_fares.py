import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("harbor_fares")
good = run("harbor_fares",
           ("self.count = 1e-2", 'self.register_buffer("count", torch.tensor(1e-2))'),
           ("self.mean = torch.zeros(dim)", 'self.register_buffer("mean", torch.zeros(dim))'),
           ("self.var = torch.ones(dim)", 'self.register_buffer("var", torch.ones(dim))'))
assert not any(k.startswith("scale.") for k in bad["model"].state_dict())
assert sum(k.startswith("scale.") for k in good["model"].state_dict()) == 3
assert torch.equal(bad["model"].scale.mean, torch.zeros(4))  # the last job works without the scale of the first
assert good["model"].scale.mean[2] > 1000
x = bad["harbor"].requests(500)
assert (bad["model"].scale(x) == 5).float().mean() > 0.3  # clipped features
print("share of the possible revenue", bad["shares"], good["shares"])
assert bad["shares"][0] == good["shares"][0]
assert all(g > b + 0.01 for g, b in zip(good["shares"][1:], bad["shares"][1:]))
