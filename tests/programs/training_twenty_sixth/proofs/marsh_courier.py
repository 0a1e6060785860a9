import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np
import torch

torch.set_num_threads(1)
bad = run("marsh_courier")
good = run("marsh_courier",
           ("        return self.state\n", "        return self.state.copy()\n"),
           ("return self.state, reward", "return self.state.copy(), reward"))


def same_share(r):
    return np.mean([torch.equal(t.state, t.next_state) for t in r["memory"].items])


def distinct(r):
    return len({tuple(t.state.tolist()) for t in r["memory"].items}) / len(r["memory"].items)


def score(r):
    return r["play"](r["net"], r["DriftCart"](np.random.default_rng(1234)), 60)


print("state == next_state", same_share(bad), same_share(good), "distinct", distinct(bad), distinct(good))
b, g = score(bad), score(good)
print("return", b, g)
assert same_share(bad) == 1.0 and same_share(good) == 0.0
assert distinct(bad) < 0.1 and distinct(good) > 0.95
assert g > b + 3
