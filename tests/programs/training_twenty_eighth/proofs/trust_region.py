import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("    old_dist = policy.dist(obs)\n", "    with torch.no_grad():\n        old_dist = policy.dist(obs)\n")


def curvature(result):
    """The Fisher matrix of the entries of log_std is 2 on the diagonal (a Gaussian); damping is 0.1."""
    seen = result.locals["update"]
    params = list(result["policy"].parameters())
    unit = torch.zeros(sum(p.numel() for p in params))
    first = 0
    for p in params:
        if p is result["policy"].log_std:
            unit[first] = 1.0
            where = first
        first += p.numel()
    random = torch.randn(len(unit), generator=torch.Generator().manual_seed(0))
    return seen["fisher"](unit)[where].item(), rel(seen["fisher"](random), 0.1 * random), seen


wrong, right = run("trust_region", capture=("update",)), run("trust_region", FIX, capture=("update",))
w, w_rel, seen = curvature(wrong)
r, r_rel, seen_right = curvature(right)
print("fisher of log_std + damping", w, r, "distance from damping * v", w_rel, r_rel)
assert abs(w - 0.1) < 1e-3 and w_rel < 1e-3      # no curvature at all: only the damping
assert abs(r - 2.1) < 1e-2 and r_rel > 0.5
cos = torch.cosine_similarity(seen["direction"], seen["gradient"], 0).item()
cos_right = torch.cosine_similarity(seen_right["direction"], seen_right["gradient"], 0).item()
print("cosine of direction and plain gradient", cos, cos_right)
assert cos > 0.9999 and cos_right < 0.9
print(sum(wrong["history"][-5:]) / 5, sum(right["history"][-5:]) / 5)
