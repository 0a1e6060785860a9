import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, in_optimizer, run

wrong = run("distill_hint")
student, opt = wrong["student"], wrong["optimizer"]
for p in student.regressor.parameters():
    assert in_optimizer(p, opt) and p.grad is None and p not in opt.state
none = run("distill_hint", ("T, ALPHA, BETA = 3.0, 0.7, 0.5", "T, ALPHA, BETA = 3.0, 0.7, 0.0"))
assert torch.equal(flat(student), flat(none["student"])), "the hint term has no influence at all"
fixed = run("distill_hint", ("F.mse_loss(hint, target).item()", "F.mse_loss(hint, target)"))
assert all(p in fixed["optimizer"].state for p in fixed["student"].regressor.parameters())
assert not torch.equal(flat(student.hidden), flat(fixed["student"].hidden))
print("proved: distill_hint")
