import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, in_optimizer, run

wrong = run("transfer_head")
model, opt = wrong["model"], wrong["optimizer"]
assert all(p.grad is not None and not in_optimizer(p, opt) for p in model.fc.parameters())
one = run("transfer_head", ("for epoch in range(8)", "for epoch in range(1)"))
assert torch.equal(flat(model.fc), flat(one["model"].fc))
assert not torch.equal(flat(model.features), flat(one["model"].features))
print("proved: transfer_head")
