import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("garment_norm")
good = run(
    "garment_norm",
    ("self.moving_mean = torch.zeros(shape)", 'self.register_buffer("moving_mean", torch.zeros(shape))'),
    ("self.moving_var = torch.ones(shape)", 'self.register_buffer("moving_var", torch.ones(shape))'),
)
print(bad.output, good.output)
assert not any("moving" in k for k in bad["saved"]["model"])
for layer in (bad["final"][1], bad["final"][5]):  # the loaded model has the starting statistics
    assert torch.equal(layer.moving_mean, torch.zeros_like(layer.moving_mean))
    assert torch.equal(layer.moving_var, torch.ones_like(layer.moving_var))
assert (bad["model"][5].moving_mean.abs() > 0.1).any()
assert bad["best_acc"] == good["best_acc"]  # the training is the same
assert bad["test_acc"] < good["test_acc"] - 0.1
