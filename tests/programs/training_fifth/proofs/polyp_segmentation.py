import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

bad = run("polyp_segmentation")
good = run("polyp_segmentation", ("(torch.sigmoid(logits) > 0.5).float()", "torch.sigmoid(logits)"))
logits = torch.randn(2, 1, 8, 8, requires_grad=True)
target = (torch.rand(2, 1, 8, 8) > 0.7).float()
assert not bad["dice_loss"](logits, target).requires_grad
assert good["dice_loss"](logits, target).requires_grad
print(bad["final_iou"], good["final_iou"])
assert bad["final_iou"] + 0.15 < good["final_iou"]
