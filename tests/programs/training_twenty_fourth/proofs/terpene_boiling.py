import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("terpene_boiling")
good = run("terpene_boiling", ("inbox[dst] += message", "inbox.index_add_(0, dst, message)"))


def neighbours_used(r):
    """How many of the bonds of a molecule reach the output of one interaction."""
    torch.manual_seed(0)
    layer, used, total = r["Interaction"](8), 0, 0
    with torch.no_grad():
        for element, edges, kinds, _ in r["train"][:5]:
            h = torch.randn(len(element), 8)
            before = layer(h, edges, kinds)
            for i in range(len(kinds)):
                changed = kinds.clone()
                changed[i] = 1 - changed[i]
                used += int(not torch.equal(before, layer(h, edges, changed)))
                total += 1
    return used, total


print("bonds that count", neighbours_used(bad), neighbours_used(good))
used, total = neighbours_used(bad)
assert used < 0.8 * total
used, total = neighbours_used(good)
assert used == total
a, b = (r["evaluate"](r["model"], r["test"], r["mean"], r["std"]) for r in (bad, good))
print("test MAE", a, b)
assert a > 1.5 * b
