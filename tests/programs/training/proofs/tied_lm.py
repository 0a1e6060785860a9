import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import rel, run

wrong = run("tied_lm", capture=["main"]).locals["main"]["model"]
assert wrong.head.weight is not wrong.embed.weight
assert rel(wrong.head.weight, wrong.embed.weight) > 0.5
fixed = run(
    "tied_lm",
    ("        self.head.weight = nn.Parameter(0.1 * torch.randn(self.head.out_features, self.head.in_features))\n", ""),
    capture=["main"],
).locals["main"]["model"]
assert fixed.head.weight is fixed.embed.weight
assert sum(p.numel() for p in wrong.parameters()) > sum(p.numel() for p in fixed.parameters())
print("proved: tied_lm")
