import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("face_metric", capture=["main"]).locals["main"]
assert any(torch.isnan(p).any() for p in wrong["model"].parameters())
assert wrong["skipped"] == 8
fixed = run("face_metric", ("diff.pow(2).sum(dim=-1).sqrt()", "(diff.pow(2).sum(dim=-1) + 1e-9).sqrt()"), capture=["main"]).locals["main"]
assert all(torch.isfinite(p).all() for p in fixed["model"].parameters()) and fixed["skipped"] == 0
assert fixed["best"] < wrong["best"]
print("proved: face_metric")
