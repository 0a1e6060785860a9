import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

w = run("deep_ensemble_regression")
f = run("deep_ensemble_regression", ("nn.ModuleList([GaussianMLP(hidden)] * size)", "nn.ModuleList([GaussianMLP(hidden) for _ in range(size)])"))
count = lambda r: sum(p.numel() for p in r["ensemble"].parameters())
single = sum(p.numel() for p in w["GaussianMLP"]().parameters())
print("parameters", count(w), count(f), "epistemic", w["epistemic"].max().item(), f["epistemic"].max().item())
assert len({id(m) for m in w["ensemble"].members}) == 1 and count(w) == single and count(f) == 4 * single
assert w["epistemic"].max() < 1e-10 and f["epistemic"].max() > 1e-3
