import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("    groups = [\n", "    no_decay += [model.cls_token, model.pos_embed]\n    groups = [\n")
bad, good = run("mosaic_compass"), run("mosaic_compass", FIX)
torch = bad["torch"]
left = [n for n, p in bad["model"].named_parameters() if not in_optimizer(p, bad["optimizer"])]
assert left == ["cls_token", "pos_embed"], left
assert all(in_optimizer(p, good["optimizer"]) for p in good["model"].parameters())
assert (bad["model"].cls_token == 0).all() and bad["model"].pos_embed.std() < 0.03
assert good["model"].pos_embed.std() > 2 * bad["model"].pos_embed.std()
print("accuracy", bad["accuracy"], good["accuracy"])
assert good["accuracy"] > bad["accuracy"] + 0.05
