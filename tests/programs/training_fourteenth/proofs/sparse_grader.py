import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

wrong = run("sparse_grader")
right = run("sparse_grader", (
    "            opt.step()\n",
    "            opt.step()\n            with torch.no_grad():\n                for m, k in zip(PR[0].layers, PR[0].masks):\n                    m.weight.mul_(k)\n"),
    ("    pruner = Pruner(model)\n", "    pruner = Pruner(model)\n    PR[:] = [pruner]\n"), inject={"PR": []})


def facts(g):
    ws = [m.weight.detach() for m in g["pruner"].layers]
    zeros = sum((w == 0).sum().item() for w in ws) / sum(w.numel() for w in ws)
    cut = torch.cat([w[k == 0] for w, k in zip(ws, g["pruner"].masks)])
    m = g["model"]
    import copy
    cleaned = copy.deepcopy(m)
    for layer, k in zip([l for l in cleaned.modules() if isinstance(l, torch.nn.Linear) and l.out_features > 1], g["pruner"].masks):
        layer.weight.data.mul_(k)
    import numpy as np
    x, y = g["make_loans"](4000, np.random.default_rng(77))
    return zeros, cut.abs().max().item(), cut.norm().item(), g["auc"](m, x, y), g["auc"](cleaned, x, y)


w, r = facts(wrong), facts(right)
print("reported sparsity", wrong["pruner"].sparsity(), right["pruner"].sparsity())
print("wrong: true sparsity, max |cut|, |cut|, auc, auc with masks applied", w)
print("repaired:", r)
assert wrong["pruner"].sparsity() > 0.89 and w[0] < 0.5 and w[1] > 0.005
assert r[0] > 0.89 and r[1] == 0
