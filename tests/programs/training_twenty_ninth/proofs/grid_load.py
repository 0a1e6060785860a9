import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("filter(lambda p: p.requires_grad, model.parameters())", "[p for p in model.parameters() if p.requires_grad]")
# look at the gradient that the optimizer really uses
PROBE = ("        self.optimizer.step()\n", "        seen.append(flat_grad(self.model).norm().item())\n        self.optimizer.step()\n")

wrong_norms, right_norms = [], []
wrong = run("grid_load", PROBE, inject={"seen": wrong_norms, "flat_grad": flat_grad})
right = run("grid_load", FIX, PROBE, inject={"seen": right_norms, "flat_grad": flat_grad})
limit = wrong["trainer"].max_norm
best = lambda r: min(row["val"] for row in r["history"].rows)
print("largest norm", max(wrong_norms), max(right_norms), "best error", best(wrong), best(right))

assert list(wrong["trainer"].trainable) == []                     # nothing is left for clip_grad_norm_
assert max(right_norms) <= limit * 1.001
assert max(wrong_norms) > 5 * limit
assert sum(n > limit * 1.001 for n in wrong_norms) > len(wrong_norms) / 4
assert best(right) < 0.8 * best(wrong)
