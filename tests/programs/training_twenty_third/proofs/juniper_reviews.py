import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
FIX = ("self.pe[: x.size(0)]", "self.pe[: x.size(1)].transpose(0, 1)")
wrong, fixed = run("juniper_reviews"), run("juniper_reviews", FIX)


def probes(g):
    m, x = g["model"].eval(), g["xv"]
    with torch.no_grad():
        twice = m(x[:1].repeat(20, 1))
        by_row = (twice - twice[:1]).abs().max().item()          # same review, other row of the batch
        order = (m(x[:1]) - m(x[:1].flip(1))).abs().max().item()  # other order of words
    return by_row, order, g["accuracy"](m, g["xv"], g["yv"])


w, f = probes(wrong), probes(fixed)
print(w, f)
assert w[0] > 1e-2 and f[0] < 1e-4
assert w[1] < 1e-4 and f[1] > 1e-2
assert f[2] > w[2] + 0.04
