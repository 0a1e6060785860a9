import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

wrong = run("token_tagger")
right = run("token_tagger", ("strict=True, assign=True)", "strict=True)"))
import torch

first, second = wrong["first"], wrong["second"]
assert not any(in_optimizer(p, second.optimizer) for p in second.model.parameters())
assert torch.equal(flat(first.model), flat(second.model))  # 80 steps, nothing moved
fixed = right["second"]
assert all(in_optimizer(p, fixed.optimizer) for p in fixed.model.parameters())
assert not torch.equal(flat(right["first"].model), flat(fixed.model))
a, b = sum(second.losses[-10:]) / 10, sum(fixed.losses[-10:]) / 10
print(a, b)
assert b < 0.5 * a
