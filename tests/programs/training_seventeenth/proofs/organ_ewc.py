import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch
import torch.nn.functional as F

fix = ("            F.cross_entropy(logits, label).backward()", "            self.net.zero_grad()\n            F.cross_entropy(logits, label).backward()")
bad, good = run("organ_ewc"), run("organ_ewc", fix)


def check(r):
    """Compares register() with an independent diagonal Fisher (autograd.grad, one sample at a time)."""
    net, x = r["net"], r["tasks"][0][0][0]
    torch.manual_seed(5)
    r["ewc"].register(x)
    got = torch.cat([v.flatten() for v in r["ewc"].memory[-1][0].values()])
    torch.manual_seed(5)
    ref = 0
    for i in torch.randperm(len(x))[:r["N_FISHER"]]:
        logits = net(x[i:i + 1])
        label = torch.distributions.Categorical(logits=logits.detach()).sample()
        g = torch.autograd.grad(F.cross_entropy(logits, label), list(net.parameters()))
        ref = ref + torch.cat([v.flatten() for v in g]).pow(2) / r["N_FISHER"]
    return got.sum().item(), ref.sum().item(), rel(got, ref)


b, g = check(bad), check(good)
print("importance sum, true sum, relative error: wrong", b, "repaired", g)
print("mean accuracy", bad["mean_acc"], good["mean_acc"], "last task", bad["table"][-1][-1], good["table"][-1][-1])
assert b[2] > 1.0 and g[2] < 1e-3
