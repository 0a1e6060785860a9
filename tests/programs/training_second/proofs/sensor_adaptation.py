import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "sensor_adaptation"

def encoder_gradient(*edits):
    r = run(NAME, *edits, as_main=False)
    torch.manual_seed(0)
    model = r["DomainAdversarialNet"](6, 24, 3)
    x = torch.randn(16, 6)
    labels, domains = model(x, 0.3)
    torch.nn.functional.cross_entropy(labels, torch.arange(16) % 3).backward()
    label = flat_grad(model.encoder)
    model.zero_grad()
    torch.nn.functional.cross_entropy(model.predict(x), torch.arange(16) % 3).backward()
    return label, flat_grad(model.encoder)


label, true = encoder_gradient()
assert rel(label, -0.3 * true) < 1e-4
label, true = encoder_gradient(("    features.register_hook", "    features = features.view_as(features)\n    features.register_hook"))
assert rel(label, true) < 1e-4

print(f"proved: {NAME}")
