import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "averaged_digits"

was = run(NAME)
bn = was["ema"].module.bn1
assert bn.running_mean.abs().sum() == 0 and bn.num_batches_tracked == 0 and was["model"].bn1.running_mean.abs().sum() > 0
stale = was["accuracy"](was["ema"].module, *was["test"])
fix = (
    "            ema.mul_(self.decay).add_(param, alpha=1 - self.decay)\n",
    "            ema.mul_(self.decay).add_(param, alpha=1 - self.decay)\n"
    "        for ema, buffer in zip(self.module.buffers(), model.buffers()):\n"
    "            ema.copy_(buffer)\n",
)
now = run(NAME, fix)
assert now["accuracy"](now["ema"].module, *now["test"]) > stale + 0.2

print(f"proved: {NAME}")
