import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad, rel
import torch

FIX = ("p.grad = g / TASKS_PER_STEP", "p.grad = g / TASKS_PER_STEP if p.grad is None else p.grad + g / TASKS_PER_STEP")
bad = run("sine_fomaml", capture=("meta_step",))
last = torch.cat([g.flatten() for g in bad.locals["meta_step"]["grads"]]) / bad["TASKS_PER_STEP"]
print("grad used vs last task's only:", rel(flat_grad(bad["model"]), last))
good = run("sine_fomaml", FIX, capture=("meta_step",))
glast = torch.cat([g.flatten() for g in good.locals["meta_step"]["grads"]]) / good["TASKS_PER_STEP"]
print("repaired:", rel(flat_grad(good["model"]), glast), "adapted", bad["after"], good["after"])
assert rel(flat_grad(bad["model"]), last) < 1e-6 and rel(flat_grad(good["model"]), glast) > 0.1
diffs = []
for seed in (11, 12, 13):
    s = ("SEED = 11", f"SEED = {seed}")
    diffs.append((run("sine_fomaml", s)["after"], run("sine_fomaml", s, FIX)["after"]))
print(diffs)
assert all(b > 1.03 * g for b, g in diffs)
