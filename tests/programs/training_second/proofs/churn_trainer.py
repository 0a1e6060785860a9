import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "churn_trainer"

was = run(NAME)["trainer"].model.net[1].num_batches_tracked.item()
now = run(NAME, ("        total = 0.0\n", "        self.model.train()\n        total = 0.0\n"))["trainer"].model.net[1].num_batches_tracked.item()
assert (was, now) == (8, 48), (was, now)

print(f"proved: {NAME}")
