import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
import torch

# The 1x1 regressor is in no optimizer: weights stay at their initial values although gradients arrive.
spy = ("optimizer = torch.optim.SGD(", "regressor_start = regressor.conv.weight.detach().clone()\noptimizer = torch.optim.SGD(")
bad = run("hint_student", spy)
good = run("hint_student", spy, ("nn.ModuleList([student])", "nn.ModuleList([student, regressor])"))
w = bad["regressor"].conv.weight
assert not in_optimizer(w, bad["optimizer"], bad["opt_t"])
assert torch.equal(w, bad["regressor_start"]) and w.grad.abs().max() > 0
assert not torch.equal(good["regressor"].conv.weight, good["regressor_start"])
hint = [r["hint_sum"] / len(r["batches"]) for r in (bad, good)]
print("hint", hint)
print(bad.output, good.output)
assert hint[1] < 0.9 * hint[0]
