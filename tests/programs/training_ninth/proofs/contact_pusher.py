import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = ("vel.pow(2).sum(1, keepdim=True).sqrt()", "(vel.pow(2).sum(1, keepdim=True) + 1e-12).sqrt()")
w, f = run("contact_pusher"), run("contact_pusher", fix)
zero = lambda r: sum(n == 0 for n in r["norms"]) / len(r["norms"])


def raw_nan(ns):
    torch.manual_seed(0)
    policy = ns["Pusher"]()
    ns["rollout"](policy, *ns["scenes"](200, torch.Generator().manual_seed(0))).mean().backward()
    return any(p.grad.isnan().any() for p in policy.parameters())


print(zero(w), zero(f), w["final"], f["final"])
assert raw_nan(w) and not raw_nan(f)
assert zero(w) > 0.9 and zero(f) == 0
assert w["final"] > 1.5 * f["final"]
