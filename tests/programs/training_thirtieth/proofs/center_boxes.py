import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = ("centerness[positive],", "centerness[positive].squeeze(-1),")


def look(r):
    model, centers = r["model"], r["centers"]
    images, boxes = r["test"]
    with torch.no_grad():
        _, centerness, _ = model(images)
        wanted = r["side_targets"](boxes, centers)
        positive = wanted.amin(-1) > 0
        p, t = centerness[positive].squeeze(-1).sigmoid(), r["centerness_target"](wanted[positive])
    return p.std().item(), t.std().item(), torch.corrcoef(torch.stack([p, t]))[0, 1].item(), p.mean().item(), t.mean().item()


a, b = run("center_boxes"), run("center_boxes", fix)
la, lb = look(a), look(b)
print("as written: std of prediction, of target, correlation, means", [round(v, 3) for v in la])
print("repaired:                                                   ", [round(v, 3) for v in lb])
assert la[0] < 0.3 * la[1] and lb[0] > 0.6 * lb[1]
assert la[2] < 0.5 and lb[2] > 0.8
assert abs(la[3] - la[4]) < 0.08     # it has learned the mean of the targets

# shape and gradient of the term
logits = torch.randn(7, 1, requires_grad=True)
target = torch.rand(7)
f = a["soft_cross_entropy"]
g_written, = torch.autograd.grad(f(logits, target), logits)
g_formula, = torch.autograd.grad(torch.nn.functional.binary_cross_entropy_with_logits(logits, target[:, None]), logits)
assert (torch.nn.functional.softplus(logits) - target * logits).shape == (7, 7)
assert rel(g_written, g_formula) > 0.1
assert rel(torch.autograd.grad(f(logits.squeeze(-1), target), logits)[0], g_formula) < 1e-5
