import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
NEW = "    opt.step()\n    with torch.no_grad():\n        for n, m in PRUNERS[-1].masks.items():\n            PRUNERS[-1].weights[n].mul_(m)\n"
FIX = [("    opt.step()\n", NEW), ("    pruner = Pruner(model)\n", "    pruner = Pruner(model)\n    PRUNERS.append(pruner)\n"),
       ("NODES, FEATURES, FIELDS =", "PRUNERS = []\nNODES, FEATURES, FIELDS =")]
w, f = run("prune_graph"), run("prune_graph", *FIX)
print(w.output, f.output)
def facts(r):
    pr = r["pruner"]
    nonzero = sum((v != 0).sum() for v in pr.weights.values()) / sum(v.numel() for v in pr.weights.values())
    x, adj, _ = r["data"]
    with torch.no_grad():
        full = r["model"].eval()(x, adj)
        norm_pruned = torch.cat([v[pr.masks[n] == 0] for n, v in pr.weights.items()]).norm().item()
        norm_kept = torch.cat([v[pr.masks[n] == 1] for n, v in pr.weights.items()]).norm().item()
        for n, v in pr.weights.items():
            v.mul_(pr.masks[n])
        cut = r["model"](x, adj)
    return nonzero.item(), norm_pruned / norm_kept, ((full - cut).norm() / full.norm()).item(), pr.density()
a, b = facts(w), facts(f)
print(a, b)
assert a[0] > 0.7 and a[3] < 0.11 and a[2] > 0.02
assert b[0] < 0.11 and b[1] == 0 and b[2] < 1e-5
