import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("log_risk = log_risk[order]", "log_risk, event = log_risk[order], event[order]")
bad, good = run("hospice_hazard"), run("hospice_hazard", FIX)
print(bad["final_c"], good["final_c"])
assert good["final_c"] > bad["final_c"] + 0.02


def plain_cox(log_risk, time, event):
    total = 0.0
    for i in range(len(time)):
        if event[i] == 1:
            total += log_risk[i] - torch.logsumexp(log_risk[time >= time[i]], 0)
    return -total / event.sum()


x, time, event = (t[:100] for t in bad["valid_set"])
risk = torch.randn(100, generator=torch.Generator().manual_seed(0), requires_grad=True)
ref, = torch.autograd.grad(plain_cox(risk, time, event), risk)
gb, = torch.autograd.grad(bad["cox"](risk, time, event), risk)
gg, = torch.autograd.grad(good["cox"](risk, time, event), risk)
print(rel(gb, ref), rel(gg, ref))
assert rel(gg, ref) < 1e-4 and rel(gb, ref) > 0.2
