import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("            slow.lerp_(fast, 1 - decay)\n", "            slow.lerp_(fast, 1 - decay)\n"
       "        for slow, fast in zip(self.model.buffers(), live.buffers(), strict=True):\n            slow.copy_(fast)\n")
bad, good = run("keyword_spotter"), run("keyword_spotter", FIX)
print("error of the average", bad["result"], good["result"], "error of the last weights", bad["error_rate"](bad["model"]))
for r in (bad, good):
    bn, live = r["averaged"].model.norm, r["model"].norm
    print("running mean", bn.running_mean.item(), live.running_mean.item(), "batches", bn.num_batches_tracked.item(), live.num_batches_tracked.item())
bn = bad["averaged"].model.norm
assert bn.running_mean.abs().max() == 0 and torch.all(bn.running_var == 1) and bn.num_batches_tracked == 0
assert bad["result"] > good["result"] + 0.1
