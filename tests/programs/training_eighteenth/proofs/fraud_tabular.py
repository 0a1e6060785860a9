import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
import torch.nn.functional as F

bad = run("fraud_tabular")
good = run("fraud_tabular", ("(per_row * weight).mean()", "(per_row * weight.unsqueeze(1)).mean()"))

# 1. the weighted loss does not depend on which row has which weight
logits, target, w = torch.randn(64, 1), (torch.rand(64, 1) > 0.5).float(), torch.rand(64) * 5
plain = F.binary_cross_entropy_with_logits(logits, target).item() * w.mean().item()
a = bad["weighted_bce"](logits, target, w).item()
b = bad["weighted_bce"](logits, target, w.flip(0)).item()
c, d = good["weighted_bce"](logits, target, w).item(), good["weighted_bce"](logits, target, w.flip(0)).item()
print("wrong loss", a, "flipped weights", b, "plain*mean(w)", plain, "| repaired", c, d)
assert abs(a - b) < 1e-5 and abs(a - plain) < 1e-5
assert abs(c - d) > 1e-3

# 2. the cost-weighted error is worse
m_bad, m_good = bad["cost_of_errors"]()[0], good["cost_of_errors"]()[0]
print("money lost", m_bad, "repaired", m_good)
assert m_good < m_bad - 0.01
