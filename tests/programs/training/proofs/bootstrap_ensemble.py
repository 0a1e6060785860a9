import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("bootstrap_ensemble")
start = run("bootstrap_ensemble", ("MEMBERS, EPOCHS = 3, 15", "MEMBERS, EPOCHS = 3, 1"), ("for epoch in range(EPOCHS):", "for epoch in range(0):"))
for k, opt in enumerate(wrong["optimizers"]):
    held = {id(p) for g in opt.param_groups for p in g["params"]}
    assert held == {id(p) for p in wrong["ensemble"][-1].parameters()}
moved = [not torch.equal(flat(a), flat(b)) for a, b in zip(wrong["ensemble"], start["ensemble"])]
assert moved == [False, False, True], moved
print("proved: bootstrap_ensemble")
