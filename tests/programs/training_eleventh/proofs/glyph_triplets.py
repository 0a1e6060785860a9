import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

FIX = ("(dist * negative_mask).min(dim=1)", "dist.masked_fill(negative_mask == 0, float('inf')).min(dim=1)")
wrong, fixed = run("glyph_triplets"), run("glyph_triplets", FIX)


def negative_side(r):
    torch.manual_seed(0)
    emb = torch.nn.functional.normalize(torch.randn(12, 8), dim=1)
    labels = torch.arange(12) // 3
    crit = r["BatchHardTriplet"](0.3)
    full = crit(emb, labels)[0]
    positive_only = ((r["pairwise_distances"](emb) * (labels[:, None] == labels).float()).masked_fill(torch.eye(12).bool(), 0)).amax(1)
    return (full - (positive_only + 0.3).mean()).abs().item()


spread = [r["test_emb"].var(0).sum().item() for r in (wrong, fixed)]
print("recall", wrong["recall"], fixed["recall"], "embedding variance", spread, "effect of negatives", negative_side(wrong), negative_side(fixed))
assert negative_side(wrong) < 1e-6 < negative_side(fixed)
assert fixed["recall"] > wrong["recall"] + 0.1
assert spread[0] < 0.1 * spread[1]
