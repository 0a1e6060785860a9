import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("running_norm", capture=["main"]).locals["main"]
norm, x = wrong["model"][0], wrong["x"]
assert norm.mean.data_ptr() == norm.mean_sq.data_ptr()
fixed = run("running_norm", ('register_buffer("mean_sq", start)', 'register_buffer("mean_sq", start.clone())'), capture=["main"]).locals["main"]
z_wrong, z_fixed = norm.eval()(x), fixed["model"][0].eval()(x)
assert (z_fixed.std(dim=0) - 1).abs().max() < 0.2
assert (z_wrong.std(dim=0) - 1).abs().max() > 0.5
assert fixed["val"] < 0.2 * wrong["val"], (fixed["val"], wrong["val"])
print("proved: running_norm")
