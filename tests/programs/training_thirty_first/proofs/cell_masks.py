import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FACTOR = ("        return grad_logits, None", "        return grad_output * grad_logits, None")
WEIGHT = ("DICE_WEIGHT = 0.1", "DICE_WEIGHT = 5.0")
written, repaired = run("cell_masks"), run("cell_masks", FACTOR)


def plain(logits, target):
    probs = torch.sigmoid(logits)
    overlap, total = (probs * target).sum((1, 2, 3)), (probs + target).sum((1, 2, 3))
    return (1 - (2 * overlap + 1.0) / (total + 1.0)).mean()


torch.manual_seed(0)
target = (torch.rand(3, 1, 5, 5) > 0.6).double()


def gradient(function, weight):
    logits = torch.linspace(-2, 2, 75, dtype=torch.double).reshape(3, 1, 5, 5).requires_grad_()
    (weight * function(logits, target)).backward()
    return logits.grad


for weight in (0.1, 5.0):
    want = gradient(plain, weight)
    assert rel(gradient(repaired["SoftDice"].apply, weight), want) < 1e-6
    assert rel(gradient(written["SoftDice"].apply, weight), want) > 0.5

# The weight of the term has no effect on the training as written.
assert rel(flat(run("cell_masks", WEIGHT)["model"]), flat(written["model"])) == 0.0
assert rel(flat(run("cell_masks", FACTOR, WEIGHT)["model"]), flat(repaired["model"])) > 0.05
assert rel(flat(written["model"]), flat(repaired["model"])) > 0.05
print(written["entropy"], repaired["entropy"])
