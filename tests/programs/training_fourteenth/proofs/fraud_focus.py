import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("with_logits(logits, targets)", 'with_logits(logits, targets, reduction="none")')
bad, good = run("fraud_focus"), run("fraud_focus", FIX)
print("recall", bad["recall"], "->", good["recall"], " balanced accuracy", bad["balanced"], "->", good["balanced"])


def share(r, alpha, gamma):
    """Gradient per sample, scaled to length one."""
    torch.manual_seed(0)
    logits = torch.randn(256, requires_grad=True)
    targets = (torch.arange(256) < 8).float()
    r["FocalLoss"](gamma, alpha)(logits, targets).backward()
    return logits.grad / logits.grad.norm()


for name, r in (("bad", bad), ("good", good)):
    cos_a = (share(r, 0.9, 2.0) @ share(r, 0.25, 2.0)).item()
    cos_g = (share(r, 0.9, 2.0) @ share(r, 0.9, 0.0)).item()
    print(name, "cosine of gradients with another alpha", cos_a, "with gamma 0", cos_g)
    if name == "bad":
        assert cos_a > 0.99999 and cos_g > 0.99999
    else:
        assert cos_a < 0.95 and cos_g < 0.98
assert good["recall"] > bad["recall"] + 0.1 and good["balanced"] > bad["balanced"] + 0.05
