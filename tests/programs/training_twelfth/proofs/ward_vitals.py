import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("ward_vitals", capture=("main",))
good = run("ward_vitals",
           ("self.count = 0\n", "self.register_buffer('count', torch.tensor(0.0))\n"),
           ("self.mean = torch.zeros(n_features)", "self.register_buffer('mean', torch.zeros(n_features))"),
           ("self.var = torch.ones(n_features)", "self.register_buffer('var', torch.ones(n_features))"))
print(bad.output, good.output)
loc = bad.locals["main"]
print(list(loc["saved"]["model"])[:3], loc["model"].scaler.mean, loc["deployed"].scaler.mean)
assert not any("scaler" in k for k in loc["saved"]["model"])
assert loc["deployed"].scaler.mean.abs().sum() == 0 and loc["model"].scaler.mean.abs().sum() > 100
assert bad["test_loss"] > 2 * good["test_loss"] and bad["test_auc"] < good["test_auc"] - 0.05
