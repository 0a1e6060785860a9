import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad
import torch

FIX = (("for step in range(STEPS):\n    optimizer.zero_grad()\n", "for step in range(STEPS):\n"),
       ("    loss.backward()\n", "    optimizer.zero_grad()\n    loss.backward()\n"))
PROBE = ("    loss.backward()\n", "    left = sum(p.grad.norm().item() ** 2 for p in energy.parameters() if p.grad is not None) ** 0.5\n"
         "    own = sum(g.norm().item() ** 2 for g in torch.autograd.grad(loss, list(energy.parameters()), retain_graph=True)) ** 0.5\n"
         "    ratios.append(left / own)\n    loss.backward()\n")
ratios = []
bad = run("rings_ebm", PROBE, inject={"ratios": ratios})
good = run("rings_ebm", *FIX)
print("left-over gradient / own gradient: first", ratios[0], "median", sorted(ratios)[len(ratios) // 2])
assert ratios[0] > 3 and sorted(ratios)[len(ratios) // 2] > 1
d = [r["ring_distance"](r["samples"]) for r in (bad, good)]
print("sample distance", d, "gap", bad["gap"], good["gap"])
assert d[1] < 0.2 < 0.5 < d[0] and bad["gap"] < 0 < good["gap"]
