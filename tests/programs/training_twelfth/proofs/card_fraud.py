import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = ("binary_cross_entropy_with_logits(logits, target)", 'binary_cross_entropy_with_logits(logits, target, reduction="none")')
wrong, right = run("card_fraud"), run("card_fraud", fix)
print("wrong", wrong["result"], "repaired", right["result"])
z = torch.tensor([6.0, -1.0, -4.0, 2.0]); t = torch.tensor([1.0, 1.0, 0.0, 0.0])
grads = []
for r in (wrong, right):
    x = z.clone().requires_grad_()
    r["FocalLoss"](0.95, 2.0)(x, t).backward()
    grads.append(x.grad)
x = z.clone().requires_grad_()
torch.nn.functional.binary_cross_entropy_with_logits(x, t).backward()
cos = [torch.cosine_similarity(g, x.grad, dim=0).item() for g in grads]
print("cosine of the gradient with that of plain BCE: wrong", cos[0], "repaired", cos[1])
assert cos[0] > 0.99999 and cos[1] < 0.95  # no per-sample weighting at all
assert right["result"]["recall"] > wrong["result"]["recall"] + 0.15
