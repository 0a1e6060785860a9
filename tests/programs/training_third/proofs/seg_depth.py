import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, in_optimizer

fix = ("chain(model.trunk.parameters(), model.depth.parameters())", "model.depth.parameters()")
s = run("seg_depth", ("steps=20", "steps=0"))["model"]
a = run("seg_depth", ("steps=20", "steps=1"))
b = run("seg_depth", ("steps=20", "steps=1"), fix)
m = a["opts"].members
assert all(in_optimizer(p, m["segment"]) and in_optimizer(p, m["depth"]) for p in a["model"].trunk.parameters())
ratio = ((flat(a["model"].trunk) - flat(s.trunk)).norm() / (flat(b["model"].trunk) - flat(s.trunk)).norm()).item()
head = ((flat(a["model"].depth) - flat(s.depth)).norm() / (flat(b["model"].depth) - flat(s.depth)).norm()).item()
assert abs(ratio - 2) < 0.05 and abs(head - 1) < 1e-4, (ratio, head)
print("proved: seg_depth")
