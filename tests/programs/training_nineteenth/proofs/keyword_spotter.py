import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

torch.set_num_threads(1)
wrong = run("keyword_spotter")
fixed = run("keyword_spotter", ("spec = self.specs[i]\n", "spec = self.specs[i].clone()\n"))
zeros = {k: (r["train_set"].specs == 0).float().mean().item() for k, r in (("wrong", wrong), ("fixed", fixed))}
print("zeros in the stored training data", zeros)
print("test accuracy", wrong["test_acc"], "->", fixed["test_acc"])
assert zeros["wrong"] > 0.9 and zeros["fixed"] < 0.01
assert fixed["test_acc"] > wrong["test_acc"] + 0.1
