import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

written = run("rating_factors")
heavy = run("rating_factors", ("PENALTY = 2e-3", "PENALTY = 2.0"))
repaired = run("rating_factors", ("filter(lambda p: p.requires_grad, model.parameters())",
                                  "[p for p in model.parameters() if p.requires_grad]"))

# a thousand times the penalty changes not one bit
assert all(torch.equal(a, b) for a, b in zip(written["model"].parameters(), heavy["model"].parameters()))
assert list(run("rating_factors", as_main=False)["Trainer"](written["model"]).params) == []
norm = [flat(r["model"]).norm().item() for r in (written, repaired)]
print("norm", norm, "held-out", written["final_rmse"], repaired["final_rmse"])
assert norm[1] < 0.8 * norm[0]
assert repaired["final_rmse"] < 0.95 * written["final_rmse"]
