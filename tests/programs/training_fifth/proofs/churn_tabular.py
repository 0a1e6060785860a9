import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

bad = run("churn_tabular")
good = run("churn_tabular", ("F.dropout(x, self.p)", "F.dropout(x, self.p, training=self.training)"))


def twice(r):
    r["model"].eval()
    with torch.no_grad():
        a, b = (r["model"](*r["test"][:2]) for _ in range(2))
    return (a - b).abs().max().item(), ((a > 0) != (b > 0)).float().mean().item()


print(twice(bad), twice(good), bad["acc"], good["acc"])
assert twice(bad)[1] > 0.03 and twice(good)[0] == 0
mean_bad = sum(bad["accuracy"](bad["model"], bad["test"]) for _ in range(20)) / 20
print(mean_bad)
assert mean_bad + 0.02 < good["acc"]
