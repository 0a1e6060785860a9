import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat_grad, rel, run

wrong = run("pinn_oscillator")
fix = ("u_tt = torch.autograd.grad(u_t.sum(), t, retain_graph=True)[0]", "u_tt = torch.autograd.grad(u_t.sum(), t, create_graph=True)[0]")
fixed = run("pinn_oscillator", ("STEPS = 200", "STEPS = 0"), fix)
fixed["field"].load_state_dict(wrong["field"].state_dict())
grads, values = [], []
for r in (wrong, fixed):
    r["field"].zero_grad()
    loss = r["residual"](r["field"], r["t_train"]).pow(2).mean()
    loss.backward()
    values.append(loss.item())
    grads.append(flat_grad(r["field"]))
assert abs(values[0] - values[1]) < 1e-5 * abs(values[1]) + 1e-6, "the same value"
assert rel(grads[0], grads[1]) > 0.3, "but another gradient: the part through u_tt is missing"
print("proved: pinn_oscillator")
