import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("            adj, grads = state[1], state[2:]\n", "            adj, grads = state[1] + grad_zs[i - 1], state[2:]\n")
bad, good = run("enzyme_orbit"), run("enzyme_orbit", FIX)


def gradients(ns):
    torch.manual_seed(0)
    func, ts, data = ns["Rate"](), ns["ts"], ns["train"]
    ((ns["odeint"](func, data[0], ts, 8) - data) ** 2).mean().backward()
    adjoint = flat_grad(func)
    func.zero_grad()
    z, zs = data[0], [data[0]]
    for i in range(1, len(ts)):
        z = ns["rk4"](lambda t, s: (func(t, s[0]),), ts[i - 1], ts[i], (z,), 8)[0]
        zs.append(z)
    ((torch.stack(zs) - data) ** 2).mean().backward()
    return adjoint, flat_grad(func)


e_bad, e_good = rel(*gradients(bad)), rel(*gradients(good))
print("error of the gradient against backprop: as written", e_bad, "repaired", e_good)
print("held-out mse: as written", bad["test_mse"], "repaired", good["test_mse"])
assert e_good < 1e-3 and e_bad > 0.3
assert bad["test_mse"] > 2 * good["test_mse"]
