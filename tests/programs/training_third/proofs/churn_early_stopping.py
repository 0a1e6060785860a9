import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
N = "churn_early_stopping"
gap = lambda r: abs(r["validate"](r["model"], r["val"]) - r["stopper"].best)
bad = run(N)
good = run(N, ("v.detach().cpu()", "v.detach().cpu().clone()"))
assert good["stopper"].best == bad["stopper"].best
assert gap(good) < 1e-6 and gap(bad) > 0.05, (gap(good), gap(bad))
print(f"proved: {N}")
