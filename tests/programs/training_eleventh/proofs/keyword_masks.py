import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("keyword_masks")
fixed = run("keyword_masks", ("spec = self.specs[index]", "spec = self.specs[index].clone()"))
erased = [(r["train_set"].specs == 0).float().mean().item() for r in (wrong, fixed)]
print("share of erased stored training data", erased, "test accuracy", wrong["test_acc"], fixed["test_acc"])
assert erased[0] > 0.7 and erased[1] == 0.0
assert fixed["test_acc"] > wrong["test_acc"] + 0.05
