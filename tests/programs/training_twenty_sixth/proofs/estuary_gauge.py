import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("agg[dst] += msg", "agg = agg.index_add(0, dst, msg)")
bad = run("estuary_gauge")
good = run("estuary_gauge", FIX)

# two edges into node 0: a change of either source must change the output of node 0
moved = {}
for label, g in (("bad", bad), ("good", good)):
    torch.manual_seed(0)
    conv = g["FlowConv"](3, 8)
    x, ei, width = torch.rand(3, 3), torch.tensor([[1, 2], [0, 0]]), torch.ones(2, 1)
    base = conv(x, ei, width)[0]
    moved[label] = []
    for node in (1, 2):
        y = x.clone()
        y[node] += 1.0
        moved[label].append((conv(y, ei, width)[0] - base).abs().sum().item())
print(moved, bad["test_mae"], good["test_mae"])
assert min(moved["bad"]) == 0 and min(moved["good"]) > 1e-3
assert bad["test_mae"] > 2 * good["test_mae"]
