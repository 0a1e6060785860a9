import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

a = run("name_writer")
b = run("name_writer", ("== 0, 1e-9)", '== 0, float("-inf"))'))
for r, leaks in ((a, True), (b, False)):
    x = r["data"][:16][None]
    y = x.clone()
    y[0, -1] = (y[0, -1] + 1) % len(r["chars"])
    change = (r["model"](x)[0, :-1] - r["model"](y)[0, :-1]).abs().max().item()
    assert (change > 1e-3) == leaks, change
print("proved: name_writer")
