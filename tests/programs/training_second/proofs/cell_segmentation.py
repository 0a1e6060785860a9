import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "cell_segmentation"

was = flat(run(NAME)["model"])
last = flat(run(NAME, ("            loss.backward()\n", "            if (i + 1) % accumulate == 0:\n                loss.backward()\n"))["model"])
fixed = flat(
    run(
        NAME,
        ("            optimizer.zero_grad()\n", ""),
        ("                optimizer.step()\n", "                optimizer.step()\n                optimizer.zero_grad()\n"),
    )["model"]
)
assert torch.equal(was, last)
assert rel(was, fixed) > 0.02, rel(was, fixed)

print(f"proved: {NAME}")
