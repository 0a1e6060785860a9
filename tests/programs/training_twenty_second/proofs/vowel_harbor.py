import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import re

FIX = ("spec = self.feats[i]\n", "spec = self.feats[i].clone()\n")


def zeroed(g):
    return (g["train_set"].feats == 0).float().mean().item()


def acc(g):
    return sum(float(a) for a in re.findall(r"valid acc ([\d.]+)", g.output)[-3:]) / 3


bad, good = run("vowel_harbor"), run("vowel_harbor", FIX)
print("share of the cached training features that is zero: wrong", zeroed(bad), "repaired", zeroed(good))
print("valid accuracy (mean of the last 3 epochs): wrong", acc(bad), "repaired", acc(good))
assert zeroed(bad) > 0.7 and zeroed(good) < 1e-4
assert acc(good) > acc(bad) + 0.15
