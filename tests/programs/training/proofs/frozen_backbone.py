import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, rel, run

start = run("frozen_backbone", ("range(16)", "range(0)"), capture=["main"]).locals["main"]["backbone"]
stage = run("frozen_backbone", ("range(16)", "range(12)"), capture=["main"]).locals["main"]["backbone"]
assert rel(flat(stage), flat(start)) > 0.02, "the backbone moves during the stage that holds it fixed"
fixed = run(
    "frozen_backbone",
    ("range(16)", "range(12)"),
    ("p.grad.zero_()", "p.grad = None"),
    capture=["main"],
).locals["main"]["backbone"]
assert torch.equal(flat(fixed), flat(start))
print("proved: frozen_backbone")
