import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch

OLD = "    rate = torch.autograd.grad(state, t, grad_outputs=torch.ones_like(state), create_graph=True)[0]\n"
NEW = ("    rate = torch.cat([torch.autograd.grad(state[:, i].sum(), t, create_graph=True)[0] for i in range(2)], dim=1)\n")
bad = run("oscillator_pinn", capture=("physics_loss",))
L = bad.locals["physics_loss"]
print("shapes", L["rate"].shape, L["state"].shape)
t = torch.linspace(0.1, 1.9, 50).unsqueeze(1).requires_grad_(True)
s = bad["net"](t)
rate = torch.autograd.grad(s, t, torch.ones_like(s))[0]
with torch.no_grad():
    fd = (bad["net"](t + 1e-2) - bad["net"](t - 1e-2)) / 2e-2  # true (x', v')
print("rate vs x'+v':", rel(rate, fd.sum(1, keepdim=True)), "vs x':", rel(rate, fd[:, :1]), "vs v':", rel(rate, fd[:, 1:]))
good = run("oscillator_pinn", (OLD, NEW))
print("errors", bad["error"], good["error"])
assert L["rate"].shape == (64, 1) and L["state"].shape == (64, 2)
assert rel(rate, fd.sum(1, keepdim=True)) < 0.01 and rel(rate, fd[:, :1]) > 0.3
assert bad["error"] > 0.3 and good["error"] < 0.1
