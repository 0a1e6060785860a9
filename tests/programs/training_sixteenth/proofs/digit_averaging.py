import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

r = run("digit_averaging", capture=("main",))
loc = r.locals["main"]
# the averaged model's batch-norm statistics are those from construction: mean 0, var 1, no batch ever counted
bn = loc["averaged"].net.features[1]
bn_live = loc["model"].features[1]
print("averaged bn: batches", bn.num_batches_tracked.item(), "mean abs", bn.running_mean.abs().max().item(),
      "| live:", bn_live.num_batches_tracked.item(), bn_live.running_mean.abs().max().item())
assert bn.num_batches_tracked.item() == 0 and bn.running_mean.abs().max() == 0 and (bn.running_var == 1).all()
assert bn_live.num_batches_tracked.item() > 100

fixed = run("digit_averaging", ("    plain, swa = accuracy",
            "    torch.optim.swa_utils.update_bn(train_loader, averaged.net)\n    plain, swa = accuracy"), capture=("main",))
a, b = loc["swa"], fixed.locals["main"]["swa"]
print("averaged accuracy: as written", a, " with refreshed statistics", b, " plain", loc["plain"])
assert b > a + 0.02
