import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

SPLIT = ("torch.optim.AdamW(model.parameters(), lr=2e-2, weight_decay=0.1)",
         "torch.optim.AdamW([{'params': [model.entity.weight], 'weight_decay': 0.0}, {'params': [model.relation.weight]}],"
         " lr=2e-2, weight_decay=0.1)")
written = run("entity_links")
repaired = run("entity_links", SPLIT)
known = written["N_KNOWN"]
published = written["published"]

rows = written["model"].entity.weight.detach()[:known]
shrink = (1 - 2e-2 * 0.1) ** written["STEPS"]
print("known rows: off by", rel(rows, published), "factor", shrink)
assert rel(rows, published) > 0.2                      # they must stay, and moved ...
assert rel(rows, shrink * published) < 1e-4            # ... by weight decay alone
assert written["model"].entity.weight.grad[:known].abs().max() == 0
assert rel(torch.stack([written["vectors"][f"Q{i}"] for i in range(known)]), published) > 0.2
assert torch.equal(repaired["model"].entity.weight.detach()[:known], published)
