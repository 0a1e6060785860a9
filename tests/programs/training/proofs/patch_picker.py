import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import in_optimizer, run

wrong = run("patch_picker", capture=["run"]).locals["run"]
for p in wrong["model"].scorer.parameters():
    assert in_optimizer(p, wrong["opt"]) and p.grad is None and p not in wrong["opt"].state
fixed = run(
    "patch_picker",
    ("chosen = patches[rows, best]", "chosen = (scores.softmax(1).unsqueeze(-1) * patches).sum(1)"),
    capture=["run"],
).locals["run"]
assert all(p in fixed["opt"].state for p in fixed["model"].scorer.parameters() if p.grad.abs().sum() > 0)
acc = lambda r: (r["model"](r["test_x"]).argmax(1) == r["test_y"]).float().mean().item()
assert acc(fixed) > acc(wrong) + 0.2, (acc(fixed), acc(wrong))
print("proved: patch_picker")
