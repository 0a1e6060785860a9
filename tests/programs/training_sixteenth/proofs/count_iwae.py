import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import math, torch

bad = run("count_iwae")
fix = ("x.repeat(k, 1)", "x.repeat_interleave(k, dim=0)")
good = run("count_iwae", fix)
print(bad.output, good.output)
# which data points does a row of log_w hold?
ids = torch.arange(64.).unsqueeze(1)
rows = ids.repeat(8, 1).view(64, 8)
print("row 0 mixes data points", rows[0].tolist())
assert (rows.max(1).values - rows.min(1).values).min() > 0
# the reported bound can't exceed the log-likelihood, but the mixed one does
m, x = bad["model"], bad["test_x"]
with torch.no_grad():
    mixed = sum(m.bound(x, 8).item() for _ in range(20)) / 20
    lw = torch.stack([torch.stack([m.log_weights(x) for _ in range(8)]) for _ in range(20)])
    true = (torch.logsumexp(lw, 1) - math.log(8)).mean().item()
print("mixed bound", mixed, "true bound of the same model", true, "test ll", bad["test_ll"], "good", good["test_ll"])
assert mixed > bad["test_ll"] + 0.5
assert good["test_ll"] > bad["test_ll"] + 0.1
