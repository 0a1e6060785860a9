import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "domain_tokens"
repair = ("lr=1e-2, weight_decay=0.1", "lr=1e-2, weight_decay=0.0")


def moved(*edits):
    program = run(name, *edits)
    rows = program["GENERAL"]
    now = program["model"].embedding.weight.detach()[:rows]
    old = program["pretrained"]
    return rel(now, old), now, old


distance, now, old = moved()
print("pretrained rows moved by", distance)
assert distance > 0.1
# all of it is the decay: 150 steps of the factor 1 - lr * weight_decay
assert rel(now, old * (1 - 1e-2 * 0.1) ** 150) < 1e-4
distance, now, old = moved(repair)
assert torch.equal(now, old)
