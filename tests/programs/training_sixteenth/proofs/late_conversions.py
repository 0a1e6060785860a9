import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("late_conversions")["metrics"]
good = run("late_conversions", ("p = torch.sigmoid(logits)\n", "p = torch.sigmoid(logits).detach()\n"))["metrics"]
print("as written", bad)
print("weights detached", good)
assert abs(good["calibration"] - 1) < 0.05
assert abs(bad["calibration"] - 1) > 0.15
assert bad["mae"] > 1.2 * good["mae"] and bad["logloss"] > good["logloss"] + 0.001
