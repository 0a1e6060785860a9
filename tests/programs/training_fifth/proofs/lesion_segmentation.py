import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
g = run("lesion_segmentation", capture=("main",))
w = g.locals["main"]
r = run("lesion_segmentation", ("(logits.sigmoid() > 0.5).float()", "logits.sigmoid()"), capture=("main",)).locals["main"]
assert not w["dice"].requires_grad and r["dice"].requires_grad and w["loss"].requires_grad
logits = torch.randn(2, 1, 24, 24, requires_grad=True); masks = w["masks"][:2]
total, entropy, _ = g["segmentation_loss"](logits, masks, w["config"])
(a,), (b,) = torch.autograd.grad(total, logits, retain_graph=True), torch.autograd.grad(entropy, logits)
assert torch.equal(a, b)
# the weight of the dice term makes no difference
z = run("lesion_segmentation", ("dice_weight: float = 1.0", "dice_weight: float = 0.0"), capture=("main",)).locals["main"]
assert torch.equal(flat(z["model"]), flat(w["model"]))
print("iou", w["iou"], r["iou"])
assert r["iou"] > w["iou"] + 0.05
