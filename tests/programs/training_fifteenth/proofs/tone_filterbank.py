import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, in_optimizer, rel

FIX = ("model = CallClassifier()\n", "model = CallClassifier()\nmodel(train_x[:2])\n")
SPY = ("    history.append(", "    kernels.append(model.bank.kernel.detach().clone())\n    history.append(")
ka, kb = [], []
a = run("tone_filterbank", SPY, inject={"kernels": ka})
b = run("tone_filterbank", FIX, SPY, inject={"kernels": kb})
print("in the optimizer", in_optimizer(a["model"].bank.kernel, a["optimizer"]), "repaired", in_optimizer(b["model"].bank.kernel, b["optimizer"]))
print("relative change of the kernel", rel(ka[-1], ka[0]), "repaired", rel(kb[-1], kb[0]))
print("accuracy", a["accuracy"], "repaired", b["accuracy"])
print("norm of the unused gradient", a["model"].bank.kernel.grad.norm().item())
assert not in_optimizer(a["model"].bank.kernel, a["optimizer"]) and in_optimizer(b["model"].bank.kernel, b["optimizer"])
assert torch.equal(ka[-1], ka[0]) and rel(kb[-1], kb[0]) > 0.1
assert b["accuracy"] > a["accuracy"] + 0.05
