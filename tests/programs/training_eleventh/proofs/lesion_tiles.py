import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("(torch.sigmoid(logits) > 0.5).float()\n        dice = 1.0", "torch.sigmoid(logits)\n        dice = 1.0")
wrong = run("lesion_tiles")
heavy = run("lesion_tiles", ("DICE_WEIGHT = 2.0", "DICE_WEIGHT = 50.0"))
fixed = run("lesion_tiles", FIX)
fixed_heavy = run("lesion_tiles", FIX, ("DICE_WEIGHT = 2.0", "DICE_WEIGHT = 50.0"))
print(wrong["final_dice"], heavy["final_dice"], fixed["final_dice"], fixed_heavy["final_dice"])
# the weight of the Dice term has no influence at all; with a soft prediction it does and segmentation is much better
assert wrong["final_dice"] == heavy["final_dice"]
assert fixed["final_dice"] != fixed_heavy["final_dice"]
assert fixed["final_dice"] > wrong["final_dice"] + 0.08
