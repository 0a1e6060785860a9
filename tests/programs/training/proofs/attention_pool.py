import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("attention_pool", capture=["main", "forward"])
model = wrong.locals["main"]["model"]
for p in model.pool.parameters():
    assert p.grad is not None and torch.count_nonzero(p.grad) == 0
start = run("attention_pool", ("range(6)", "range(0)"), capture=["main"]).locals["main"]["model"]
assert torch.equal(flat(model.pool), flat(start.pool))
fixed = run("attention_pool", ("F.softmax(energy, dim=-1)", "F.softmax(energy, dim=1)"), capture=["main"]).locals["main"]["model"]
assert all(torch.count_nonzero(p.grad) > 0 for p in fixed.pool.parameters())
print("proved: attention_pool")
