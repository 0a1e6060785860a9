import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

REPAIR = ("difference.pow(2).sum(dim=2).sqrt()", "difference.pow(2).sum(dim=2).clamp(min=1e-12).sqrt()")


def first_gradient(*edits):
    g = run("leaf_retrieval", *edits, as_main=False)
    torch.manual_seed(0)
    z = F.normalize(torch.randn(12, 5), dim=1).requires_grad_()
    loss = g["batch_hard_loss"](z, torch.arange(3).repeat_interleave(4))
    loss.backward()
    return loss.item(), z.grad


loss, grad = first_gradient()
assert loss == loss and torch.isnan(grad).all()
loss, grad = first_gradient(REPAIR)
assert loss == loss and torch.isfinite(grad).all() and grad.norm() > 0

BEGIN = ('    print(f"recall@1 at start', '    begin = [p.detach().clone() for p in model.parameters()]\n    print(f"recall@1 at start')
TRAINED = ("    recall = recall_at_one(model, x_test, y_test)\n",
           "    recall = recall_at_one(model, x_test, y_test)\n    globals()['kept'] = locals()\n")
COUNT = ("    return history\n", "    globals()['steps_made'] = len(optimizer.state)\n    return history\n")
bad = run("leaf_retrieval", BEGIN, TRAINED, COUNT)
good = run("leaf_retrieval", BEGIN, TRAINED, COUNT, REPAIR)
moved = lambda r: max((a - p).abs().max().item() for a, p in zip(r["kept"]["begin"], r["kept"]["model"].parameters()))
mean = lambda h: sum(h) / len(h)
h, k = bad["kept"]["history"], good["kept"]["history"]
print("moved", moved(bad), moved(good))
print("loss", mean(h[:50]), mean(h[-50:]), " repaired", mean(k[:50]), mean(k[-50:]))
print("recall", bad["kept"]["recall"], good["kept"]["recall"])
assert moved(bad) == 0.0 and moved(good) > 0.01
assert bad["steps_made"] == 0 < good["steps_made"]  # Adam never made a step
assert abs(mean(h[-50:]) - mean(h[:50])) < 0.1 * mean(h[:50])
assert mean(k[-50:]) < 0.7 * mean(h[-50:]) and good["kept"]["recall"] > bad["kept"]["recall"] + 0.2
