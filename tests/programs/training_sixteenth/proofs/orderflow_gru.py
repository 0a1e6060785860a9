import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

# learning rate that is really used in the first steps
lrs = run("orderflow_gru", ("    scheduler.step()\n", "    used.append(optimizer.param_groups[0]['lr'])\n    scheduler.step()\n"),
          inject={"used": []})
used = lrs["used"]
fixed = run("orderflow_gru", ("lr_lambda=learning_rate)", "lr_lambda=lambda e: learning_rate(e) / PEAK_LR)"))
print("highest lr used", max(used), "meant", lrs["PEAK_LR"])
print("test mse as written", lrs["test_mse"], "repaired", fixed["test_mse"])
assert max(used) < 0.01 * lrs["PEAK_LR"]
assert fixed["test_mse"] < 0.6 * lrs["test_mse"]
