import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("vec.pow(2).sum(dim=-1).sqrt()", "vec.pow(2).sum(dim=-1).clamp(min=1e-12).sqrt()")
COUNT = ("                optimizer.step()\n", "                optimizer.step()\n                steps[b['n']] += 1\n")
wrong = run("cluster_potential", COUNT, inject={"steps": {4: 0, 5: 0, 6: 0}})
fixed = run("cluster_potential", COUNT, FIX, inject={"steps": {4: 0, 5: 0, 6: 0}})
print("steps", wrong["steps"], fixed["steps"], "errors", wrong["errors"], fixed["errors"])
assert wrong["steps"][4] == 0 and wrong["steps"][5] == wrong["steps"][6] == fixed["steps"][4] > 0
for g, bad in ((wrong, True), (fixed, False)):
    for b in g["buckets"]:
        m = g["model"]
        m.zero_grad()
        e, f = g["energy_and_forces"](m, b["pos"], b["mask"], True)
        loss = (e - b["energy"]).pow(2).mean() + (f[b["mask"]] - b["force"][b["mask"]]).pow(2).mean()
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(flat_grad(m)).all() == (not (bad and b["n"] == 4)), b["n"]
assert wrong["errors"][4] > 2 * fixed["errors"][4]
