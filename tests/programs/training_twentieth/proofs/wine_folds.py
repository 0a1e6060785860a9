import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("wine_folds")
good = run("wine_folds", ("in model.children():", "in model.modules():"))


def unchanged(r):
    before = {k: v.clone() for k, v in r["model"].named_parameters()}
    r["reset_weights"](r["model"])
    return [k for k, v in r["model"].named_parameters() if torch.equal(v, before[k])]


left = unchanged(bad)
left_fixed = unchanged(good)
print("left by the reset:", left, "repaired:", left_fixed)
# new data of the same kind: the true accuracy of a net trained on four fifths, always new
accs = []
for s in range(6):
    torch.manual_seed(100 + s)
    x, y = bad["make_wines"](192)
    xt, yt = bad["make_wines"](2000)
    m = bad["TabularNet"](x.shape[1])
    bad["fit"](m, x, y)
    accs.append(bad["score"](m, xt, yt))
true = sum(accs) / len(accs)
print("cv:", bad["cv_accuracy"], "repaired:", good["cv_accuracy"], "true:", true)
assert len(left) == 6 and not left_fixed
assert bad["cv_accuracy"] > good["cv_accuracy"] + 0.08
assert abs(good["cv_accuracy"] - true) < abs(bad["cv_accuracy"] - true)
