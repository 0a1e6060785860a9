import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch, torch.nn.functional as F
from proofkit import run
N = "sensor_domain_adapt"
fix = ("        if h.requires_grad:", "        h = h.view_as(h)\n        if h.requires_grad:")
def cosine(*edits):
    r = run(N, *edits, as_main=False)
    torch.manual_seed(0)
    m = r["DANN"]()
    x, y, _ = r["sample"](torch.randn(3, 10))
    ws = list(m.features.parameters())
    true = torch.autograd.grad(F.cross_entropy(m.classifier(m.features(x)), y), ws)
    seen = torch.autograd.grad(F.cross_entropy(m(x, 0.8)[0], y), ws)
    f = lambda g: torch.cat([t.flatten() for t in g])
    return F.cosine_similarity(f(true), f(seen), dim=0).item()
assert cosine() < -0.99 and cosine(fix) > 0.99
print(f"proved: {N}")
