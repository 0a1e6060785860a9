import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("dose_posterior")
net = bad["net"]
net.zero_grad()
(net(bad["dose"]) - bad["effect"]).pow(2).mean().backward()
data_grad = {n: (0.0 if p.grad is None else p.grad.abs().max().item()) for n, p in net.named_parameters()}
good = run("dose_posterior", ("return torch.normal(mu, F.softplus(rho))", "return mu + F.softplus(rho) * torch.randn_like(mu)"))
print(data_grad)
print("rmse", bad["rmse"], "repaired", good["rmse"])
assert all(v == 0.0 for n, v in data_grad.items() if n.startswith(("inp", "mid")))
assert data_grad["calibrate.weight"] > 0
assert good["rmse"] < 0.6 * bad["rmse"]
