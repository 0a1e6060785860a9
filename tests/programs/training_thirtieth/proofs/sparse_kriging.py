import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("        self.sites = nn.Parameter(centers)\n", "        self.sites.data.copy_(centers)\n")
KEEP = ("        trace = []\n", "        trace = []\n        self.start = self.model.sites.detach().clone()\n")
wrong, fixed = run("sparse_kriging", KEEP), run("sparse_kriging", KEEP, FIX)
assert not in_optimizer(wrong["gp"].sites, wrong["fitter"].optimizer)
assert in_optimizer(fixed["gp"].sites, fixed["fitter"].optimizer)
assert torch.equal(wrong["fitter"].start, wrong["gp"].sites) and wrong["gp"].sites.grad.abs().max() > 0
assert torch.equal(wrong["fitter"].start, fixed["fitter"].start)
assert (fixed["gp"].sites - fixed["fitter"].start).abs().max() > 0.05
print("bound", wrong["trace"][-1], fixed["trace"][-1], "rmse", wrong["rmse"], fixed["rmse"])
assert wrong["trace"][0] == fixed["trace"][0] and wrong["trace"][-1] > fixed["trace"][-1] + 0.05
assert wrong["rmse"] > fixed["rmse"]
