import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("session_pool")
good = run("session_pool", ("torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=1)"))
with torch.no_grad():
    w = bad["model"](bad["val_sessions"])[1]
mask = bad["val_sessions"] != 0
grads = [p.grad.abs().max().item() for p in bad["model"].pool.parameters()]
print(w[mask].unique(), grads, bad["best_loss"], good["best_loss"], bad["final_hits"], good["final_hits"])
assert (w[mask] == 1).all() and max(grads) == 0
assert good["best_loss"] < bad["best_loss"] - 0.05
