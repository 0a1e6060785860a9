import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

# Zeroed gradients do not hold weights still under Adam with weight decay (old moments and the L2 term keep moving them).
spy = ("    final = train(", "    snaps.append([l.weight.detach().clone() for l in model.layers])\n    final = train(")
after = ("    row = [accuracy", "    ends.append([l.weight.detach().clone() for l in model.layers])\n    row = [accuracy")
fix = ("            optimizer.step()\n",
       "            old = [l.weight.detach().clone() for l in model.layers]\n"
       "            optimizer.step()\n"
       "            with torch.no_grad():\n"
       "                for i, l in enumerate(model.layers):\n"
       "                    held = (model.owner(i) >= 0) & (model.owner(i) < task)\n"
       "                    l.weight[held] = old[i][held]\n")
res = []
for edits in ([spy, after], [spy, after, fix]):
    snaps, ends = [], []
    r = run("packed_tasks", *edits, inject={"snaps": snaps, "ends": ends})
    drift = []
    for i in range(2):
        mine = r["model"].owner(i) == 0
        drift.append(((ends[-1][i] - ends[0][i])[mine].norm() / ends[0][i][mine].norm()).item())
    res.append((drift, r["forgetting"], r["table"][-1]))
print(res)
assert min(res[0][0]) > 0.05 and max(res[1][0]) == 0.0
assert res[0][1] > 0.05 and abs(res[1][1]) < 1e-6
