import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("        distiller.train()\n", "        distiller.train()\n        distiller.teacher.eval()\n")
errors = []
for seed in (13, 14, 15):
    s = ("SEED = 13", f"SEED = {seed}")
    w, r = run("pocket_student", s), run("pocket_student", s, FIX)
    errors.append((w["error"], r["error"]))
    for name, g in (("wrong", w), ("repaired", r)):
        t = g["distiller"].teacher
        x = torch.randn(256, 12)
        a, b = t(x)[0].detach(), t(x)[0].detach()
        print(seed, name, "teacher.training", t.training, "two passes differ by", (a - b).pow(2).mean().item(), "error", g["error"])
        assert t.training == (name == "wrong")
        assert ((a - b).abs().max().item() > 0.05) == (name == "wrong")
assert all(r < 0.97 * w for w, r in errors), errors
