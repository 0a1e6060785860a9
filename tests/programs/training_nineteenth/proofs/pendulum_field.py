import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("pendulum_field")
fix = [('        lr = self.defaults["lr"]\n', ""), ('            b1, b2 = group["betas"]\n', '            lr = group["lr"]\n            b1, b2 = group["betas"]\n')]
good = run("pendulum_field", *fix)


def moved(ns, lr):
    p = torch.nn.Parameter(torch.ones(3))
    o = ns["Belief"]([p], lr=1e-2)
    o.param_groups[0]["lr"] = lr
    p.grad = torch.tensor([1.0, -2.0, 0.5])
    o.step()
    return (p - 1).norm().item()


print("scheduler's last lr", bad["sched"].get_last_lr(), "movement at group lr 0:", moved(bad, 0.0), "repaired", moved(good, 0.0))
print("forecast error", bad["forecast_error"], "repaired", good["forecast_error"], "field", bad["field_error"], good["field_error"])
assert moved(bad, 0.0) == moved(bad, 1e-2) > 1e-3 and moved(good, 0.0) == 0.0
assert bad["sched"].get_last_lr()[0] < 1e-6
assert good["forecast_error"] < 0.7 * bad["forecast_error"]
