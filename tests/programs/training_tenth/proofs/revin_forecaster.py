import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

# decode before the future is encoded: the statistics are then those of the past
fix = [("    with torch.no_grad():\n        z_future", "    forecast = model.decode(z)\n    with torch.no_grad():\n        z_future"), ("dim=-1).mean()\n    forecast = model.decode(z)\n", "dim=-1).mean()\n")]
bad = run("revin_forecaster", capture=("training_loss",))
good = run("revin_forecaster", *fix, capture=("training_loss",))
for r, leaks in ((bad, True), (good, False)):
    model, p, f = r["model"], r["train_past"][:8], r["train_future"][:8]
    import types
    seen = []
    original = model.decode
    model.decode = lambda z: seen.append(original(z)) or seen[-1]
    r["training_loss"](model, p, f)
    r["training_loss"](model, p, f + 5.0)
    del model.decode
    shift = (seen[1] - seen[0]).mean().item()
    assert (abs(shift - 5) < 0.01) if leaks else (abs(shift) < 1e-4), shift
print(bad["running"], bad["test_error"], good["running"], good["test_error"])
assert bad["running"] < good["running"] and good["test_error"] < 0.95 * bad["test_error"]
