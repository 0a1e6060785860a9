import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "keyword_spotting"

import math

was = run(NAME, capture=["main"])
scores = was["model"](was["spec"])
assert torch.allclose(scores.sum(1), torch.ones(len(scores)), atol=1e-5)
floor = math.log(math.e + 3) - 1
assert was.locals["main"]["loss"].item() > floor
now = run(NAME, ("nn.Sequential(nn.Linear(24, words), nn.Softmax(dim=1))", "nn.Linear(24, words)"), capture=["main"])
assert now.locals["main"]["loss"].item() < 0.5 * floor

print(f"proved: {NAME}")
