import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

repair = (", assign=True", "")
wrong, right = run("bearing_wear"), run("bearing_wear", repair)

# The optimizer of the second job holds none of the parameters that the model computes with.
trainer = wrong["trainer"]
assert not any(in_optimizer(p, trainer.optimizer) for p in trainer.model.parameters())
assert all(in_optimizer(p, right["trainer"].optimizer) for p in right["trainer"].model.parameters())

# 300 steps move nothing, though every parameter has a gradient.
saved = wrong["saved"]["model"]
assert trainer.step == 400
assert all(torch.equal(p, saved[n]) for n, p in trainer.model.named_parameters())
assert all(p.grad.abs().sum() > 0 for p in trainer.model.parameters())
saved = right["saved"]["model"]
assert all(not torch.equal(p, saved[n]) for n, p in right["trainer"].model.named_parameters())

print(wrong["first_error"], wrong["second_error"], right["second_error"])
assert wrong["second_error"] == wrong["first_error"]
assert right["second_error"] < 0.7 * right["first_error"]
