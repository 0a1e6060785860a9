import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = [
    ("self.moving_mean = torch.zeros(1, channels, 1, 1)", "self.register_buffer('moving_mean', torch.zeros(1, channels, 1, 1))"),
    ("self.moving_var = torch.ones(1, channels, 1, 1)", "self.register_buffer('moving_var', torch.ones(1, channels, 1, 1))"),
]


def measure(r):
    live = r["accuracy"](r["net"], r["test_x"], r["test_y"])
    r["submitted"].eval()
    with torch.no_grad():
        gap = rel(r["submitted"](r["test_x"]), r["net"](r["test_x"]))
    return live, r["test_acc"], gap


bad, good = measure(run("abacus_glyphs")), measure(run("abacus_glyphs", *FIX))
print("live acc, reloaded acc, output gap:", bad, good)
assert good[2] == 0.0 and good[0] == good[1]
assert bad[2] > 0.2 and bad[0] - bad[1] > 0.1
