import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch


def owned(r):
    return torch.cat([l.weight.detach()[o == 1] for l, o in zip(r["net"].body, r["net"].owner)])


def drift(r):
    """Train one more task: do the weights owned by task 0 move?"""
    before = owned(r)
    r["trainer"].free_code = 0
    r["trainer"].release()
    r["trainer"].run_epochs(2, r["tasks"][2][0], 2)
    return (owned(r) - before).abs().max().item()


bad = run("lagoon_packs")
good = run("lagoon_packs", ("lr=self.lr, weight_decay=self.weight_decay)", "lr=self.lr)"))
first = run("lagoon_packs", ("make_tasks(3,", "make_tasks(1,"))   # the state after task 0, same gradients up to then
for r in (bad, good):   # accuracy of task 0 right after it was learned, and at the end
    print(r["table"][0][0], r["table"][-1][0], owned(r).norm().item(), owned(first).norm().item())
assert good["table"][0][0] == good["table"][1][0] == good["table"][2][0]
assert bad["table"][-1][0] < bad["table"][0][0] - 0.2
assert owned(bad).norm() < 0.1 * owned(first).norm() and owned(good).norm() > 0.5 * owned(first).norm()
db, dg = drift(bad), drift(good)
print(db, dg)
assert db > 0 and dg == 0.0
