import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

old = "loss = cox_loss(model(patch, clinical), time, event)"
new = "loss = cox_loss(model(patch, clinical).squeeze(1), time, event)"
bad = run("lesion_survival", capture=("main",))
good = run("lesion_survival", (old, new), capture=("main",))
torch.manual_seed(0)
r, t = torch.randn(50, 1), torch.rand(50)
e1 = (torch.arange(50) < 20).float()
e2 = e1.flip(0)
loss = bad["cox_loss"]
print("loss with event marks", loss(r, t, e1).item(), "with other marks", loss(r, t, e2).item(),
      "flat:", loss(r[:, 0], t, e1).item(), loss(r[:, 0], t, e2).item())
assert abs(loss(r, t, e1) - loss(r, t, e2)) < 1e-2 and abs(loss(r[:, 0], t, e1) - loss(r[:, 0], t, e2)) > 0.1
for m in (bad, good):
    m = m.locals["main"]
    print("C", m["observed"], "true C", m["full"], "frailty", m["frailty"])
b, g = bad.locals["main"], good.locals["main"]
assert g["full"] > b["full"] + 0.05 and b["frailty"] > 0.5 > 2 * abs(g["frailty"])
