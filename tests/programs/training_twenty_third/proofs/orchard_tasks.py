import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("        for i in range(len(x)):\n", "        for i in range(len(x)):\n            model.zero_grad()\n")
bad, good = run("orchard_tasks"), run("orchard_tasks", fix)


def stacked(glob):
    return torch.cat([v.flatten() for v in glob["ewc"].memories[0][1].values()])


a, b = stacked(bad), stacked(good)
corr = torch.corrcoef(torch.stack([a, b]))[0, 1].item()
print("importance, mean", a.mean().item(), b.mean().item(), "correlation", corr)
print(bad["table"]); print(good["table"])

# reference: per-sample gradients of the first snapshot, one autograd.grad call for each sample and label
model, x = good["snapshots"][0], good["tasks"][0].train[0][:300]
exact = 0
for i in range(len(x)):
    lp = torch.log_softmax(model(x[i:i + 1]), 1)[0]
    for c in range(len(lp)):
        g = torch.autograd.grad(lp[c], list(model.parameters()), retain_graph=True)
        exact = exact + lp[c].exp().detach() * torch.cat([t.flatten() for t in g]) ** 2 / len(x)
print("mean of the exact Fisher", exact.mean().item())
assert 0.5 < b.mean() / exact.mean() < 2
assert a.mean() / exact.mean() > 10
new_bad, new_good = bad["table"][-1][-1], good["table"][-1][-1]
print("last task", new_bad, new_good, "mean", sum(bad["table"][-1]) / 3, sum(good["table"][-1]) / 3)
assert new_good > new_bad + 0.1
