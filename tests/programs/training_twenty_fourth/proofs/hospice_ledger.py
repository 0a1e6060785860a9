import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

bad = run("hospice_ledger")
good = run("hospice_ledger", ("            yield self.x[rows]", "            rows = rows.sort().values\n            yield self.x[rows]"))


def c(r):
    return r["evaluate"](r["model"], r["valid"])


# an explicit partial likelihood, risk sets built from the times themselves
def explicit(model, x, time, event):
    s = model(x)
    at_risk = time[None, :] >= time[:, None]
    lse = torch.where(at_risk, s[None, :], torch.tensor(-torch.inf)).logsumexp(1)
    return -((s - lse) * event).sum() / event.sum()


torch.manual_seed(0)
model, train = good["RiskNet"]().eval(), good["train"]
rows = torch.randperm(len(train))[:128]
grads = {}
for name, order in (("shuffled", rows), ("sorted", rows.sort().values)):
    model.zero_grad()
    good["cox_loss"](model(train.x[order]), train.event[order]).backward()
    grads[name] = flat_grad(model)
model.zero_grad()
explicit(model, train.x[rows], train.time[rows], train.event[rows]).backward()
ref = flat_grad(model)
print("gradient error shuffled/sorted:", rel(grads["shuffled"], ref), rel(grads["sorted"], ref))
print("valid (nll, C) wrong/right:", c(bad), c(good))
print(bad.output, good.output, sep="\n")
assert rel(grads["shuffled"], ref) > 0.3 and rel(grads["sorted"], ref) < 1e-4
assert c(good)[1] > c(bad)[1] + 0.05 and c(good)[0] < c(bad)[0] - 0.05
