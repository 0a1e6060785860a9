import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, flat_grad
import torch

fix = [("    optimizer.zero_grad()\n    x_adv = attack.perturb(x, y)\n", "    x_adv = attack.perturb(x, y)\n    optimizer.zero_grad()\n")]
check = ("    loss.backward()\n    optimizer.step()\n    return loss.item()",
         "    RIGHT = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)])\n"
         "    loss.backward()\n    ERRORS.append(rel(flat_grad(model), RIGHT))\n    optimizer.step()\n    return loss.item()")


def facts(*edits):
    errors = []
    run("pgd_adversarial_training", check, *edits, inject={"ERRORS": errors, "rel": rel, "flat_grad": flat_grad})
    errors.sort()
    return errors[len(errors) // 2]


w, f = facts(), facts(*fix)
print("relative error of the gradient that is applied (median): wrong", w, "fixed", f)
assert w > 1.0 and f < 1e-4
