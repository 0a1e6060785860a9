import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

REPAIR = ("            optimizer.step()\n", "            optimizer.step()\n            for n, w in pruner.weights.items():\n"
          "                w.data.mul_(pruner.masks[n])\n")


def regrown(r):
    pairs = [(w.detach(), r["pruner"].masks[n]) for n, w in r["pruner"].weights.items()]
    return torch.cat([(w[m == 0] != 0).float() for w, m in pairs]).mean().item()


def stored(r):
    return sum(t.coalesce().values().numel() for t in r["stored"].values() if t.is_sparse)


wrong, fixed = run("pruned_classifier"), run("pruned_classifier", REPAIR)
print(regrown(wrong), regrown(fixed), stored(wrong), stored(fixed), wrong["pruner"].sparsity())
assert wrong["pruner"].sparsity() > 0.89, "the mask says 90 per cent"
assert all((w.grad[wrong["pruner"].masks[n] == 0] == 0).all() for n, w in wrong["pruner"].weights.items())
assert regrown(wrong) > 0.9 and regrown(fixed) == 0, "pruned entries, whose gradient is zero, have moved off zero"
assert stored(wrong) > 8 * stored(fixed), "the sparse file holds everything"
