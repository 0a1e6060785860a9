import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("grads.append([p.grad for p in shared])", "grads.append([p.grad.clone() for p in shared])")
wrong = run("scene_heads", capture=("train",))
right = run("scene_heads", FIX, capture=("train",))
a, b = wrong.locals["train"]["grads"]
assert all(x is y for x, y in zip(a, b))  # both tasks' lists hold the very same tensors
c, d = right.locals["train"]["grads"]
assert not any(torch.equal(x, y) for x, y in zip(c, d))
# so what was merged is exactly twice the last task's gradient: the depth task is not in it
merged = wrong.locals["train"]["merged"]
last = torch.cat([g.flatten() for g in b])
assert torch.allclose(merged, 2 * last)
print(wrong["depth_error"], right["depth_error"], wrong["accuracy"], right["accuracy"])
assert wrong["depth_error"] > 1.2 * right["depth_error"]
