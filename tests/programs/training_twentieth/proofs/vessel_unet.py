import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat

SOFT = (
    "dice_loss = 1.0 - dice_score(logits, masks)",
    "p = torch.sigmoid(logits); dice_loss = 1.0 - ((2 * (p * masks).sum(dim=(1, 2, 3)) + 1)"
    " / (p.sum(dim=(1, 2, 3)) + masks.sum(dim=(1, 2, 3)) + 1)).mean()",
)
# the Dice term reaches no parameter
bad = run("vessel_unet")
logits = bad["model"](bad["train_x"][:16])
assert logits.requires_grad and not bad["dice_score"](logits, bad["train_y"][:16]).requires_grad
# its weight changes nothing: the same weights bit for bit without it
none = run("vessel_unet", ("DICE_WEIGHT = 2.0", "DICE_WEIGHT = 0.0"))
assert torch.equal(flat(bad["model"]), flat(none["model"]))
scores = []
for seed in range(11, 17):
    s = ("SEED = 11", f"SEED = {seed}")
    scores.append((run("vessel_unet", s)["test_dice"], run("vessel_unet", s, SOFT)["test_dice"]))
print(scores)
mean_bad, mean_good = (sum(c) / len(scores) for c in zip(*scores))
print(mean_bad, mean_good)
assert mean_good > mean_bad + 0.03 and sum(b > a for a, b in scores) >= 5
