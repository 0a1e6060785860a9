import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
b = run("ebm_langevin", capture=("main",))
g = run("ebm_langevin", ("        optimizer.zero_grad()\n        real =", "        real ="),
        ("        loss.backward()\n", "        optimizer.zero_grad()\n        loss.backward()\n"), capture=("main",)).locals["main"]
m = b.locals["main"]
print("auc", m["auc"], "repaired", g["auc"])
assert g["auc"] > 0.8 and m["auc"] < g["auc"] - 0.1
e = m["energy"]
e.zero_grad(); b["langevin"](e, b["real_samples"](64))
pollution = flat_grad(e).norm()
e.zero_grad(); (e(b["real_samples"](64)).mean() - e(m["background"][:64]).mean()).backward()
print("pollution", pollution.item(), "gradient of the loss", flat_grad(e).norm().item())
assert pollution > 5 * flat_grad(e).norm()
