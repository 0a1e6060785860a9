import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

SOFT = [("        dice = 1.0 - dice_score(logits, masks)\n",
         "        p = torch.sigmoid(logits)\n"
         "        d = (1, 2, 3)\n"
         "        dice = 1.0 - ((2 * (p * masks).sum(d) + 1.0) / (p.sum(d) + masks.sum(d) + 1.0)).mean()\n")]
bad, good = run("nodule_unet"), run("nodule_unet", *SOFT)
print(bad.output, good.output, sep="\n")


def grad(r, weight):
    torch.manual_seed(0)
    logits = torch.randn(4, 1, 32, 32, requires_grad=True)
    masks = (torch.rand(4, 1, 32, 32) > 0.95).float()
    r["BCEDiceLoss"](weight)(logits, masks).backward()
    return logits.grad


diff_bad = (grad(bad, 50.0) - grad(bad, 0.0)).abs().max().item()
diff_good = (grad(good, 50.0) - grad(good, 0.0)).abs().max().item()
print("change of gradient by Dice weight 0 -> 50:", diff_bad, "repaired", diff_good)
assert diff_bad == 0.0 and diff_good > 1e-3

# the trained weights are the same with any Dice weight
none = run("nodule_unet", ("DICE_WEIGHT = 1.0", "DICE_WEIGHT = 0.0"))
assert all(torch.equal(a, b) for a, b in zip(bad["model"].parameters(), none["model"].parameters()))


def dice(r):
    return float(r.output.splitlines()[-1].split("valid dice ")[1])


print("valid dice", dice(bad), "repaired", dice(good))
assert dice(good) > dice(bad) + 0.05
