import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "cosine_shapes"

was = run(NAME)
now = run(NAME, ("T_max=epochs)", "T_max=epochs * len(train_loader))"))
assert abs(was["optimizer"].param_groups[0]["lr"] - 0.1) < 1e-6
assert now["optimizer"].param_groups[0]["lr"] < 1e-6

print(f"proved: {NAME}")
