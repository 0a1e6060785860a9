import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = [('        lr = self.defaults["lr"]\n', ""), ('            beta1, beta2 = group["betas"]\n', '            beta1, beta2 = group["betas"]\n            lr = group["lr"]\n')]


def move(cls, lr):
    p = torch.nn.Parameter(torch.ones(3))
    opt = cls([p], lr=0.1, weight_decay=0.0)
    for g in opt.param_groups:
        g["lr"] = lr
    p.grad = torch.ones(3)
    opt.step()
    return (1 - p.detach()).abs().max().item()


w, f = run("adamw_from_scratch_transformer"), run("adamw_from_scratch_transformer", *fix)
print("step with group lr 0: wrong", move(w["MyAdamW"], 0.0), "fixed", move(f["MyAdamW"], 0.0))
print("last lr", w["optimizer"].param_groups[0]["lr"])
assert abs(move(w["MyAdamW"], 0.0) - 0.1) < 1e-5 and abs(move(w["MyAdamW"], 0.05) - 0.1) < 1e-5
assert move(f["MyAdamW"], 0.0) == 0.0 and abs(move(f["MyAdamW"], 0.05) - 0.05) < 1e-5
p = torch.nn.Parameter(torch.ones(3)); q = torch.nn.Parameter(torch.ones(3))
p.grad, q.grad = torch.ones(3), torch.ones(3)
f["MyAdamW"]([p], lr=0.1).step(); torch.optim.AdamW([q], lr=0.1, betas=(0.9, 0.98), weight_decay=0.01).step()
assert torch.allclose(p, q, atol=1e-6)
