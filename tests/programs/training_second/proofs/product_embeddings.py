import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "product_embeddings"

was = run(NAME)["model"]
torch.manual_seed(0)
r = run(NAME, (", rounds=5)", ", rounds=0)"))["model"]
assert torch.equal(flat(was), flat(r))
assert torch.isnan(flat_grad(was)).any()
now = run(NAME, (".sum(-1).sqrt()", ".sum(-1).add(1e-12).sqrt()"))["model"]
assert torch.isfinite(flat_grad(now)).all() and rel(flat(now), flat(r)) > 0.05

print(f"proved: {NAME}")
