import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("feature_mask")
start = run("feature_mask", ("EPOCHS = 8", "EPOCHS = 0"))
logits = wrong["model"].select.logits
assert logits.grad is not None and torch.count_nonzero(logits.grad) == 0
assert torch.equal(logits, start["model"].select.logits)
fixed = run(
    "feature_mask",
    ("return torch.round(torch.sigmoid(self.logits))", "p = torch.sigmoid(self.logits); return p + (p.round() - p).detach()"),
)
assert torch.count_nonzero(fixed["model"].select.logits.grad) > 0
assert not torch.equal(fixed["model"].select.logits, start["model"].select.logits)
print("proved: feature_mask")
