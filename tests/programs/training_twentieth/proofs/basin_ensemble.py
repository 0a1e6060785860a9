import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

bad = run("basin_ensemble", capture=("main",))
torch.manual_seed(9)
m = bad.locals["main"]
good = run("basin_ensemble", ("    forecast = ensemble_forecast(",
    "    for i, model in enumerate(models):\n"
    "        model.load_state_dict({k: v[i].detach() for k, v in params.items()})\n"
    "    forecast = ensemble_forecast("), capture=("main",)).locals["main"]
before = run("basin_ensemble", ("for step in range(120)", "for step in range(1)"), capture=("main",)).locals["main"]
for a, b in zip(m["models"], before["models"]):
    for p, q in zip(a.parameters(), b.parameters()):
        assert torch.equal(p, q) and p.grad is None  # 120 steps and 1 step leave the same models
print("rmse", m["rmse"], "after one step", before["rmse"], "repaired", good["rmse"], "loss", m["losses"].mean().item())
assert m["rmse"] == before["rmse"] and m["rmse"] > 5 * good["rmse"]
