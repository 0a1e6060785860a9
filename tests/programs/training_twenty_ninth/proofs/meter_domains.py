import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

FIX = ("            slow.mul_(decay).add_(fast, alpha=1 - decay)\n",
       "            slow.mul_(decay).add_(fast, alpha=1 - decay)\n"
       "        for slow, fast in zip(self.model.buffers(), student.buffers()):\n"
       "            slow.copy_(fast)\n")
a = run("meter_domains")
b = run("meter_domains", FIX)
bn_t, bn_s = a["teacher"].model.features[1], a["student"].features[1]
print("running mean: teacher", bn_t.running_mean.abs().max().item(), "student", bn_s.running_mean.abs().max().item())
print("ensemble accuracy: as written", a["final"], "repaired", b["final"])
print(a.output, b.output)
assert bn_t.running_mean.abs().max() == 0 and bool((bn_t.running_var == 1).all())
assert bn_t.num_batches_tracked == 0 and bn_s.num_batches_tracked == 120
assert bn_s.running_mean.abs().max() > 0.3
assert b["final"] > a["final"] + 0.3
