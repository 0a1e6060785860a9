import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("t.reshape(B, self.heads, T, self.head_dim) for t",
       "t.reshape(B, T, self.heads, self.head_dim).transpose(1, 2) for t")


def measure(r):
    """How much the outputs of earlier positions move when only the last input token is changed."""
    m, x = r["model"], r["vx"]
    x2 = x.clone()
    x2[:, 18:] = (x2[:, 18:] + 5) % 27
    with torch.no_grad():
        return (m(x)[:, :18] - m(x2)[:, :18]).abs().max().item(), r["val"].item()


bad, bad_val = measure(run("plover_scribe"))
good, good_val = measure(run("plover_scribe", FIX))
print("leak", bad, good, "val", bad_val, good_val)
assert bad > 0.1 and good < 1e-4
assert abs(bad_val - good_val) > 0.02
