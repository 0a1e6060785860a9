import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("v.detach().cpu() for", "v.detach().cpu().clone() for")
wrong = run("tide_average")
right = run("tide_average", FIX)
for result in (wrong, right):
    result.shared = [
        result["averager"].mean[k].data_ptr() == v.data_ptr() for k, v in result["trainer"].model.state_dict().items()
    ]
last = right["test_loss"](right["trainer"].model.state_dict(), right["test"])
print("averaged, as written", wrong["averaged"], "repaired", right["averaged"], "last weights", last)

assert all(wrong.shared) and not any(right.shared)
final = wrong["trainer"].model.state_dict()
assert all(torch.equal(wrong["averager"].mean[k], v) for k, v in final.items())   # the "average" is the last weights
assert abs(wrong["averaged"] - last) < 1e-3
assert right["averaged"] < 0.93 * wrong["averaged"]
