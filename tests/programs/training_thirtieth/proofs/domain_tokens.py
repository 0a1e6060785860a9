import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

asis = run("domain_tokens")
fixed = run("domain_tokens", ("lr=2e-2, weight_decay=0.1)", "lr=2e-2, weight_decay=0.0)"))
V = asis["VOCAB"]
for r in (asis, fixed):
    r.now = r["model"].embed.weight.detach()
old, new = asis["rows_before"][:V], asis.now[:V]
ratio = new / old
print("ratio of the old rows after / before", ratio.min().item(), ratio.max().item())
print("ppl", asis["ppl_before"], asis["ppl_after"], "repaired", fixed["ppl_after"])
# every pretrained row shrinks by the same factor, (1 - lr * decay) ** steps: no gradient moved it
assert torch.allclose(ratio, torch.full_like(ratio, (1 - 2e-2 * 0.1) ** 100), atol=1e-3)
# repaired, the pretrained rows stay as they were to the bit and only the new ones move
assert torch.equal(fixed.now[:V], fixed["rows_before"][:V])
assert rel(fixed.now[V:], fixed["rows_before"][V:]) > 0.5
# the base model is better kept and the domain is learnt better
assert fixed["ppl_after"][0] < asis["ppl_after"][0] - 0.2 and fixed["ppl_after"][1] < asis["ppl_after"][1]
