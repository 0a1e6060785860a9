import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

LINE = "            ema_p.mul_(self.decay).add_(p, alpha=1.0 - self.decay)\n"
FIX = (LINE, LINE + "        for ema_b, b in zip(self.module.buffers(), model.buffers()):\n            ema_b.copy_(b)\n")
wrong, fixed = run("texture_average"), run("texture_average", FIX)
bn = wrong["ema"].module.stem[1]
print("ema running mean/var", bn.running_mean.abs().max().item(), bn.running_var.min().item(), bn.num_batches_tracked.item())
print("ema accuracy", wrong["acc_ema"], fixed["acc_ema"], "raw", wrong["acc_model"], fixed["acc_model"])
assert torch.equal(bn.running_mean, torch.zeros(12)) and torch.equal(bn.running_var, torch.ones(12))
assert bn.num_batches_tracked == 0 and wrong["model"].stem[1].num_batches_tracked == 80
assert wrong["acc_model"] == fixed["acc_model"]
assert fixed["acc_ema"] > wrong["acc_ema"] + 0.2
