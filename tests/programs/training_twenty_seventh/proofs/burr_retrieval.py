import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("(dist * (~same).float()).min(dim=1)", 'dist.masked_fill(same, float("inf")).min(dim=1)')
a, b = run("burr_retrieval"), run("burr_retrieval", fix)
ids = torch.arange(8).repeat_interleave(4)


def probe(r):
    """Cosine of the loss gradient with that of a pull-only loss, on the same features."""
    f = torch.randn(32, 16, generator=torch.Generator().manual_seed(5)).requires_grad_()
    (g,) = torch.autograd.grad(r["batch_hard"](f, ids, 0.3), f)
    d = r["pairwise"](torch.nn.functional.normalize(f, dim=1)) * (ids[:, None] == ids[None])
    (pull,) = torch.autograd.grad(d.max(1).values.mean(), f)
    return rel(g, pull)


print("distance from the pull-only gradient", probe(a), probe(b))
assert probe(a) < 1e-5 and probe(b) > 0.1
print("recall@1", a["score"], b["score"])
assert b["score"] > a["score"] + 0.03
