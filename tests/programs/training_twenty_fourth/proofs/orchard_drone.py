import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

bad = run("orchard_drone", capture=("main",))
good = run("orchard_drone", ("        return self.state\n", "        return self.state.copy()\n"), capture=("main",))


def still(r):
    items = list(r.locals["main"]["replay"].items)
    same = sum(torch.equal(o, n) for o, _, _, n in items) / len(items)
    distinct = len({o.data_ptr() for o, _, _, _ in items}) / len(items)
    return same, distinct


def ret(r):
    # evaluate both policies in the repaired environment
    return good["greedy_return"](r.locals["main"]["online"])


b, g = ret(bad), ret(good)
print("obs == next_obs, share of own storage:", still(bad), still(good))
print("greedy return wrong/right:", b, g)
print(bad.output, good.output)
assert still(bad)[0] == 1.0 and still(good)[0] < 0.02
assert still(bad)[1] < 0.05 and still(good)[1] > 0.9
assert g > b + 5
