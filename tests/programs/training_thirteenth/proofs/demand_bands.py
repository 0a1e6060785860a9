import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("demand_bands")
b = run("demand_bands", ("F.gaussian_nll_loss(mu, target, sigma)", "F.gaussian_nll_loss(mu, target, sigma ** 2)"))
print(a.output, b.output)
print("coverage of the 90% band:", a["coverage"], "repaired:", b["coverage"])
print("log score:", a["log_score"], "repaired:", b["log_score"])
ok = abs(b["coverage"] - 0.9) < 0.08 and abs(a["coverage"] - 0.9) > 0.25 and b["log_score"] > a["log_score"] + 1
sys.exit(0 if ok else 1)
