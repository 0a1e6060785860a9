import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

LOG = ("losses.append(loss.item())", 'losses.append(loss.item()); LR.append(optimizer.param_groups[0]["lr"])')
FIX = ("            optimizer = make_optimizer(net, args)  # leave", "            optimizer.state.clear()  # leave")
lr_bad, lr_good = [], []
bad = run("cosine_snapshots", LOG, capture=("main",), inject={"LR": lr_bad}).locals["main"]
good = run("cosine_snapshots", LOG, FIX, capture=("main",), inject={"LR": lr_good}).locals["main"]
n = bad["per_cycle"]
print("lr at the ends of the cycles", [lr_bad[(c + 1) * n - 2] for c in range(4)], [lr_good[(c + 1) * n - 2] for c in range(4)])
print("lr range after cycle 1", min(lr_bad[n:]), max(lr_bad[n:]))
print("snapshots", bad["singles"], good["singles"], "ensemble", bad["ensemble"], good["ensemble"])
assert bad["scheduler"].optimizer is not bad["optimizer"] and good["scheduler"].optimizer is good["optimizer"]
assert min(lr_bad[n:]) == max(lr_bad[n:]) == 0.15 and min(lr_good[n:]) < 0.001
gap = sum(good["singles"][1:]) / 3 - sum(bad["singles"][1:]) / 3
print("gap of snapshots 2 to 4", gap)
assert gap > 0.03
