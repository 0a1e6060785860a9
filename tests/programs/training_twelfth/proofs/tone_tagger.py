import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("wave = self.waves[index]", "wave = self.waves[index].clone()")
bad, good = run("tone_tagger"), run("tone_tagger", FIX)
s_bad, s_good = bad["train_set"].waves.std().item(), good["train_set"].waves.std().item()
print("std of stored training clips", s_bad, s_good, "test acc", bad["test_acc"], good["test_acc"])
print(bad.output, good.output)
assert abs(bad["train_set"].waves - good["train_set"].waves).mean() > 0.5
assert 1 - bad["test_acc"] > 3 * (1 - good["test_acc"]) and good["test_acc"] > bad["test_acc"] + 0.03
