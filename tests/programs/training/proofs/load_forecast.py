import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("load_forecast")
start = run("load_forecast", ("for epoch in range(4):", "for epoch in range(0):"))
assert all(p.grad is None for p in wrong["model"].parameters()) and len(wrong["optimizer"].state) == 0
assert torch.equal(flat(wrong["model"]), flat(start["model"]))
fixed = run("load_forecast", ("targets[:, h]).item())", "targets[:, h]))"), ("torch.tensor(per_horizon, requires_grad=True)", "torch.stack(per_horizon)"))
assert len(fixed["optimizer"].state) > 0 and fixed["epoch_loss"] < 0.8 * wrong["epoch_loss"]
print("proved: load_forecast")
