import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("digit_ebm", capture=("main",))
good = run("digit_ebm", ("        optimizer.zero_grad()\n", ""), ("        loss.backward()\n", "        optimizer.zero_grad()\n        loss.backward()\n"),
           capture=("main",))
net = bad["Energy"]()
bad["langevin"](net, torch.rand(64, 1, 8, 8))
leak = sum(p.grad.abs().sum().item() for p in net.parameters())
b, g = bad.locals["main"], good.locals["main"]
print("parameter gradient left by sampling", leak, "| data/noise ranking", bad["final_rank"], good["final_rank"],
      "| chain brightness", b["sample_mean"], g["sample_mean"], "data", b["test"].mean().item())
assert leak > 0
assert bad["final_rank"] < 0.1 and good["final_rank"] > 0.9
