import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("tumor_cox")
torch.manual_seed(bad["SEED"])
g = bad["model"].risk.weight.grad
print("last survival loss", bad["survival"].item(), "risk head grad", g.abs().max().item(), "C", bad["c_index"])
r, t, e = torch.randn(50, 1, requires_grad=True), torch.rand(50), torch.ones(50)
loss = bad["cox_loss"](r, t, e)
loss.backward()
hand = -sum((r[i, 0] - torch.logsumexp(r[t >= t[i], 0], 0)) for i in range(50)) / 50
print("cox loss", loss.item(), "by hand", hand.item())
print('max grad', r.grad.abs().max().item())
assert abs(loss.item()) < 1e-6 and r.grad.abs().max().item() < 1e-6 and hand.item() > 1
good = run("tumor_cox", ("logcumsumexp(log_risk, dim=-1)", "logcumsumexp(log_risk, dim=0)"))
assert abs(good["cox_loss"](r, t, e).item() - hand.item()) < 1e-4
print("repaired: loss", good["survival"].item(), "C", good["c_index"], "acc", bad["accuracy"], good["accuracy"])
assert g.abs().max() < 1e-5 and good["c_index"] > bad["c_index"] + 0.15 and good["c_index"] > 0.75
