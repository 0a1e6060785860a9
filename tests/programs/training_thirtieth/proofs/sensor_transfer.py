import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

REPAIR = (
    "            average.lerp_(current, 1 - decay)\n",
    "            average.lerp_(current, 1 - decay)\n"
    "        for average, current in zip(self.teacher.buffers(), self.student.buffers()):\n"
    "            average.copy_(current)\n",
)


def look(*edits):
    main = run("sensor_transfer", *edits, capture=("main",)).locals["main"]
    teacher, student = main["ensemble"].teacher, main["ensemble"].student
    return teacher.features[1], student.features[1], main["scores"]


t, s, scores = look()
print(scores)
assert torch.equal(t.running_mean, torch.zeros_like(t.running_mean)) and int(t.num_batches_tracked) == 0
assert torch.equal(t.running_var, torch.ones_like(t.running_var))
assert s.running_mean.abs().max() > 0.5 and int(s.num_batches_tracked) > 0
t, s, repaired = look(REPAIR)
print(repaired)
assert torch.equal(t.running_mean, s.running_mean)
assert repaired["source"] > scores["source"] + 0.05 and repaired["target"] > scores["target"] + 0.05
