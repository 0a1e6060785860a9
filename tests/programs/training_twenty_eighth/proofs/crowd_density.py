import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("count = density.sum(dim=(2, 3))", "count = density.sum(dim=(1, 2, 3))")
wrong = run("crowd_density", capture=("forward",))
right = run("crowd_density", repair, capture=("forward",))
# the count term of the formula, and of the program, on one batch
wrong2 = run("crowd_density", ("mae, mae_sparse", "probe = CrowdLoss(map_weight=0.0, count_weight=1.0)(model(test_images), test_maps, test_counts)\nmae, mae_sparse"))
with torch.no_grad():
    count = wrong2["model"](wrong2["test_images"]).sum(dim=(1, 2, 3))
    t = wrong2["test_counts"]
    formula = ((count - t).abs() / (t + 1)).mean().item()
print("count term", wrong2["probe"].item(), "formula", formula)
assert abs(wrong2["probe"].item() - formula) > 0.1
print("MAE", wrong["mae"], right["mae"], "dense", wrong["mae_dense"], right["mae_dense"])
assert right["mae"] < 0.6 * wrong["mae"]
spread = lambda r: (r["predicted"].std() / r["test_counts"].std()).item()
print("spread of counts", spread(wrong), spread(right))
assert spread(wrong) < 0.6 < spread(right)
