import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "ecg_beats"

import numpy as np

was = run(NAME)
clean, _ = was["record_beats"](128, 48, seed=1)
assert np.abs(was["train_set"].beats - clean).mean() > 0.1
now = run(NAME, ("torch.from_numpy(self.beats[index])", "torch.from_numpy(self.beats[index]).clone()"))
assert np.array_equal(now["train_set"].beats, clean)

print(f"proved: {NAME}")
