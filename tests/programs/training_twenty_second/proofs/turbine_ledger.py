import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

OLD = "            avg.lerp_(new, 1 - self.decay)\n"
FIX = (OLD, OLD + "        for avg, new in zip(self.model.buffers(), model.buffers()):\n            avg.copy_(new)\n")

bad, good = run("turbine_ledger"), run("turbine_ledger", FIX)
maes = {}
for label, g in (("wrong", bad), ("repaired", good)):
    x, y = g["val"]
    maes[label] = g["mae"](g["served"], x, y)
    print(label, "served MAE", maes[label], "live model MAE", g["mae"](g["model"].eval(), x, y))
    print("   running mean of the served input norm:", g["served"].scale_in.running_mean.tolist())
assert torch.equal(bad["served"].scale_in.running_mean, torch.zeros(3))
assert torch.equal(bad["served"].scale_in.running_var, torch.ones(3))
assert bad["served"].scale_in.num_batches_tracked.item() == 0
assert torch.equal(good["served"].scale_in.running_mean, good["model"].scale_in.running_mean)
for p, q in zip(bad["served"].parameters(), good["served"].parameters()):
    assert torch.equal(p, q)
assert maes["wrong"] > 1.3 * maes["repaired"]
