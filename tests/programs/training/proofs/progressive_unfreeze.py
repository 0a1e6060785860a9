import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("progressive_unfreeze")
assert wrong["scheduler"].optimizer is not wrong["optimizer"]
assert wrong["optimizer"].param_groups[0]["lr"] == 0.05, "never decayed in eight epochs"
assert wrong["scheduler"].get_last_lr()[0] < 0.002
line = "optimizer = make_optimizer(model, lr=0.05)"
fixed = run("progressive_unfreeze", (line, line + "; scheduler = ExponentialLR(optimizer, gamma=0.7)"))
assert fixed["optimizer"].param_groups[0]["lr"] < 0.01
print("proved: progressive_unfreeze")
