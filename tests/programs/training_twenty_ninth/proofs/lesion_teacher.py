import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# The teacher averages the parameters only; its batch norm keeps the statistics it was created with, in eval mode.
SYNC = ("            slow.lerp_(fast, 1 - decay)\n",
        "            slow.lerp_(fast, 1 - decay)\n"
        "        for slow, fast in zip(self.model.buffers(), student.buffers()):\n"
        "            slow.copy_(fast)\n")

written, repaired = run("lesion_teacher"), run("lesion_teacher", SYNC)


def score(state):
    return [state["dice_score"](m, state["test_images"], state["test_masks"])
            for m in (state["student"], state["teacher"].model)]


first_w, first_s = written["teacher"].model.down[1], written["student"].down[1]
assert torch.equal(first_w.running_mean, torch.zeros_like(first_w.running_mean))
assert torch.equal(first_w.running_var, torch.ones_like(first_w.running_var))
assert first_w.num_batches_tracked == 0 and first_s.num_batches_tracked == written["STEPS"]
assert first_s.running_mean.abs().max() > 5
print(score(written), score(repaired), written["agreement"].item(), repaired["agreement"].item())
assert score(written)[1] < 0.6 and score(repaired)[1] > 0.75
assert written["agreement"] > 5 * repaired["agreement"]

# The averaged weights themselves are good: with the student's statistics they segment.
for slow, fast in zip(written["teacher"].model.buffers(), written["student"].buffers()):
    slow.copy_(fast)
print(score(written))
