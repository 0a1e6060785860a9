import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
a = run("new_arrivals_bpr", capture=("main", "add_items")).locals
b = run("new_arrivals_bpr", ("            model.add_items(N_NEW)\n", "            model.add_items(N_NEW)\n            optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-4)\n"), capture=("main",)).locals
w, r = a["main"], b["main"]
assert not in_optimizer(w["model"].items.weight, w["optimizer"])
assert in_optimizer(r["model"].items.weight, r["optimizer"])
assert w["model"].items.weight.grad.abs().sum() > 0
# the new rows keep their initial spread of 0.1, repaired ones grow
sw, sr = w["model"].items.weight[60:].std().item(), r["model"].items.weight[60:].std().item()
print("spread of new rows", sw, sr, "auc new", w["new_auc"], r["new_auc"])
assert 0.08 < sw < 0.12 and sr > 0.2
assert r["new_auc"] - w["new_auc"] > 0.05
