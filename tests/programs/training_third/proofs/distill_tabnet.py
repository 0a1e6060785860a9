import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

none = ("xv, yv, epochs=6", "xv, yv, epochs=0")
fix = ("        pair.train()\n", "        pair.student.train()\n")
s, a, b = run("distill_tabnet", none), run("distill_tabnet"), run("distill_tabnet", fix)
stat = lambda r: r["pair"].teacher[1].running_mean
assert torch.equal(stat(b), stat(s)) and (stat(a) - stat(s)).abs().max() > 0.05
x = a["x"][:50]
assert a["teacher"].training and not b["teacher"].training
assert not torch.equal(a["pair"].soft_targets(x), a["pair"].soft_targets(x))
assert torch.equal(b["pair"].soft_targets(x), b["pair"].soft_targets(x))
print("proved: distill_tabnet")
