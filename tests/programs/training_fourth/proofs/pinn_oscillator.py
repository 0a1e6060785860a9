import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("u_tt = torch.autograd.grad(u_t.sum(), t, retain_graph=True)[0]", "u_tt = torch.autograd.grad(u_t.sum(), t, create_graph=True)[0]")
bad, good = run("pinn_oscillator"), run("pinn_oscillator", fix)
t = torch.linspace(0, 3, 50)[:, None]
assert bad["derivatives"](bad["model"], t)[2].grad_fn is None
assert good["derivatives"](good["model"], t)[2].grad_fn is not None
model = bad["model"]  # at the point where the mistaken training ended
grads = []
for r in (bad, good):
    loss = r["residual_loss"](model, r["physics"], t)
    grads.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]))
print("gradient off by", rel(*grads), "errors", bad["error"], good["error"])
assert rel(*grads) > 0.2
assert bad["error"] > 0.15 and good["error"] < 0.05
