import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# The soft target of the objectness carries the gradient of the IoU, so the objectness loss trains the boxes, away
# from the objects.
CUT = ("target[positive] = iou.clamp(0, 1)", "target[positive] = iou.detach().clamp(0, 1)")


def box_grad(state):
    torch.manual_seed(1)
    model = state["Detector"]()
    boxes, logits = model(state["held_out"][0])
    _, obj_loss, _ = state["criterion"](boxes, logits, state["held_out"][1])
    grad, = torch.autograd.grad(obj_loss, boxes, allow_unused=True)
    return None if grad is None else grad.norm().item()


written, repaired = run("grid_detector"), run("grid_detector", CUT)
before, after = [s["evaluate"](s["model"], *s["held_out"]) for s in (written, repaired)]
print(box_grad(written), box_grad(repaired), before, after)
assert box_grad(repaired) is None and box_grad(written) > 1e-3
assert before < 0.05 and after > 0.6

# Each step against the gradient of that loss lowers the IoU of a positive cell.
logit, iou = torch.tensor(-2.0), torch.tensor(0.5, requires_grad=True)
torch.nn.functional.binary_cross_entropy_with_logits(logit, iou).backward()
assert iou.grad.item() == 2.0
