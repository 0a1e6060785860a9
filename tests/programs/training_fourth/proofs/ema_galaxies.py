import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("            average.mul_(self.decay).add_(current, alpha=1 - self.decay)\n",
       "            average.mul_(self.decay).add_(current, alpha=1 - self.decay)\n"
       "        for average, current in zip(self.model.buffers(), model.buffers()):\n"
       "            average.copy_(current)\n")
bad, good = run("ema_galaxies"), run("ema_galaxies", fix)
print(bad["raw_acc"], bad["ema_acc"], good["ema_acc"])
for r, same in ((bad, True), (good, False)):
    bn = [m for m in r["average"].modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert all((m.num_batches_tracked.item() == 0 and m.running_mean.abs().sum().item() == 0) == same for m in bn)
assert all(m.num_batches_tracked.item() > 50 for m in bad["live"].modules() if isinstance(m, torch.nn.BatchNorm2d))
assert good["ema_acc"] > bad["ema_acc"] + 0.2
