import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import re
import torch

FIX = ("trainable = filter(lambda p: p.requires_grad, model.parameters())",
       "trainable = [p for p in model.parameters() if p.requires_grad]")
norms = []


def go(*edits):
    norms.clear()
    g = run("watch_meadow", ("            opt.step()\n", "            spy(opt)\n            opt.step()\n"), *edits,
            inject={"spy": lambda opt: norms.append(torch.cat(
                [p.grad.flatten() for q in opt.param_groups for p in q["params"]]).norm().item())})
    error = float(re.findall(r"median error ([\d.]+)", g.output)[-1])
    return g, max(norms), sum(n > 1.001 for n in norms) / len(norms), error


bad, bad_max, bad_share, bad_error = go()
good, good_max, good_share, good_error = go(FIX)
print(bad.output)
print("largest gradient norm at the step: wrong", bad_max, "repaired", good_max)
print("share of steps above max_norm: wrong", bad_share, "repaired", good_share)
print("valid median error: wrong", bad_error, "repaired", good_error)
assert bad_max > 5 and bad_share > 0.15
assert good_max <= 1.001 and good_share == 0
assert good_error < 0.9 * bad_error
