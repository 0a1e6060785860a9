import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("            q.mul_(1 - tau).add_(p, alpha=tau)\n",
       "            q.mul_(1 - tau).add_(p, alpha=tau)\n        for p, q in zip(online.buffers(), target.buffers()):\n            q.copy_(p)\n")
wrong, right = run("store_orders"), run("store_orders", FIX)
for result in (wrong, right):
    print(result["online"].norm.mean.tolist(), result["target"].norm.mean.tolist(), result["evaluate"](result["online"]))
assert wrong["target"].norm.mean.abs().max() == 0 and (wrong["target"].norm.var == 1).all()
assert wrong["online"].norm.mean.min() > 5
_, predicted, got = wrong["evaluate"](wrong["online"])
_, predicted_right, got_right = right["evaluate"](right["online"])
assert predicted > 100 * got                       # the values explode
assert abs(predicted_right - got_right) < 0.6 * got_right
