import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat_grad, rel, run

ns = run("weighted_fraud", as_main=False)
torch.manual_seed(0)
x, y, w = ns["transactions"](64)
w = w / w.mean()
model = torch.nn.Linear(10, 2)
def grad(loss):
    model.zero_grad()
    loss.backward()
    return flat_grad(model).clone()
ce = torch.nn.functional.cross_entropy
wrong = grad(ns["weighted_loss"](model(x), y, w))
unweighted = grad(ce(model(x), y))
right = grad((ce(model(x), y, reduction="none") * w.squeeze(1)).mean())
assert (ce(model(x), y, reduction="none") * w).shape == (64, 64)
assert rel(wrong, unweighted) < 1e-4, "the weights do nothing"
assert rel(wrong, right) > 0.3
print("proved: weighted_fraud")
