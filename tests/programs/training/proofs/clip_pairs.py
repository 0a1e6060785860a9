import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("clip_pairs", capture=["main"]).locals["main"]["model"]
assert torch.count_nonzero(wrong.logit_scale.grad) == 0
assert abs(wrong.logit_scale.exp().item() - 1 / 0.07) < 1e-3
fixed = run("clip_pairs", ("max_scale=10.0", "max_scale=100.0"), capture=["main"]).locals["main"]["model"]
assert torch.count_nonzero(fixed.logit_scale.grad) == 1
assert abs(fixed.logit_scale.exp().item() - 1 / 0.07) > 1e-2
print("proved: clip_pairs")
