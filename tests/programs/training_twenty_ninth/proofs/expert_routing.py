import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

KEEP = ("    optimizer = torch.optim.Adam(", "    model.start = model.mixture.router.weight.detach().clone()\n    optimizer = torch.optim.Adam(")
FIX = ("        scores, chosen = self.router(tokens).topk(self.top_k, dim=-1)\n        weights = scores.softmax(dim=-1)\n",
       "        weights, chosen = self.router(tokens).softmax(dim=-1).topk(self.top_k, dim=-1)\n")
for edits, learns in [((KEEP,), False), ((KEEP, FIX), True)]:
    model = run("expert_routing", *edits)["model"]
    router = model.mixture.router.weight
    moved = rel(router.detach(), model.start)
    print(router.grad.abs().max().item(), moved)
    if learns:
        assert router.grad.abs().max() > 0 and moved > 0.1
    else:
        assert router.grad.abs().max() == 0 and torch.equal(router, model.start)
