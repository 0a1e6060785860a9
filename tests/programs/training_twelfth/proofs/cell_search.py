import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer, rel
import torch

FIX = ("torch.optim.SGD(net.parameters()", "torch.optim.SGD([p for n, p in net.named_parameters() if n != 'alphas']")
NO_SEARCH = ("        a_optimizer.step()\n", "")
a, b = run("cell_search"), run("cell_search", FIX)
c, d = run("cell_search", NO_SEARCH), run("cell_search", FIX, NO_SEARCH)


def spread(r):
    al = r["net"].alphas.detach()
    return (al - al.mean(-1, keepdim=True)).norm().item()


print("alphas in w_optimizer", in_optimizer(a["net"].alphas, a["w_optimizer"]), in_optimizer(b["net"].alphas, b["w_optimizer"]))
print("alpha spread: as written", spread(a), "repaired", spread(b))
print("without the search step: as written", spread(c), "repaired", spread(d))
print("rel distance", rel(a["net"].alphas.detach(), b["net"].alphas.detach()), a["net"].genotype(), b["net"].genotype(), c["net"].genotype())
assert in_optimizer(a["net"].alphas, a["w_optimizer"]) and in_optimizer(a["net"].alphas, a["a_optimizer"])
assert not in_optimizer(b["net"].alphas, b["w_optimizer"])
# the training split alone moves the architecture, more than the search split does in the whole repaired run
assert spread(d) < 0.01 and spread(c) > spread(b)
assert spread(a) > 2 * spread(b)
