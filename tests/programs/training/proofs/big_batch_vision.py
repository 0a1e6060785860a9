import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import rel, run

spy = ("            optimizer.step()", "            SEEN.append([p.grad.clone() for p in model.parameters()]); optimizer.step()")
seen, good, last = [], [], []
run("big_batch_vision", spy, inject={"SEEN": seen})
run(
    "big_batch_vision",
    spy,
    ("        optimizer.zero_grad()\n", "        if i % ACCUMULATE == 0: optimizer.zero_grad()\n"),
    inject={"SEEN": good},
)
run(
    "big_batch_vision",
    spy,
    ("        optimizer.zero_grad()\n", "        if i % ACCUMULATE != ACCUMULATE - 1: continue\n        optimizer.zero_grad()\n"),
    inject={"SEEN": last},
)
cat = lambda gs: torch.cat([g.flatten() for g in gs])
assert len(seen) == len(good) == len(last) == 20
assert torch.allclose(cat(seen[0]), cat(last[0])), "the step sees only the last micro-batch"
assert rel(cat(seen[0]), cat(good[0])) > 0.5
print("proved: big_batch_vision")
