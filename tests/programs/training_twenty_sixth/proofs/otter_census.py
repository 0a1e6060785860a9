import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("dataset.labels[train_mask]", "dataset.labels[train_idx]")


def drawn(result):
    loader = result.locals["main"]["train_loader"]
    y = torch.cat([y for _, y in loader])
    return torch.bincount(y, minlength=3) / len(y)


bad = run("otter_census", capture=("main",))
good = run("otter_census", FIX, capture=("main",))
share_bad, share_good = drawn(bad), drawn(good)
acc_bad, acc_good = (r.locals["main"]["per_class"] for r in (bad, good))
print("drawn", share_bad, share_good, "recall", acc_bad, acc_good)
assert (share_good - 1 / 3).abs().max() < 0.05          # balanced as intended
assert share_bad[2] < 0.10 and share_bad[0] > 0.65      # imbalance untouched
assert acc_good.mean() > acc_bad.mean() + 0.1
assert acc_good[2] > acc_bad[2] + 0.3
