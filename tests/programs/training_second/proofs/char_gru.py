import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "char_gru"

clip = '        nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])\n'
step = "        optimizer.step()\n"
was = flat(run(NAME)["model"])
without = flat(run(NAME, (clip, ""))["model"])
fixed = flat(run(NAME, (step + clip, clip + step))["model"])
assert torch.equal(was, without)
assert rel(was, fixed) > 0.05

print(f"proved: {NAME}")
