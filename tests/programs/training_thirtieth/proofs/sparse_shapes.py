import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = ("        pruner.update(step)\n",
       "        pruner.update(step)\n        with torch.no_grad():\n            for key, w in pruner.weights.items():\n"
       "                w.mul_(pruner.masks[key])\n")


def look(r):
    model, pruner = r["model"], r["pruner"]
    with torch.no_grad():
        off = torch.cat([w[pruner.masks[k] == 0] for k, w in pruner.weights.items()])
        total = torch.cat([w.flatten() for w in pruner.weights.values()])
        before = r["accuracy"](model, *r["held_out"])
        grads = max((w.grad * (1 - pruner.masks[k])).abs().max().item() for k, w in pruner.weights.items())
        for k, w in pruner.weights.items():
            w.mul_(pruner.masks[k])
        after = r["accuracy"](model, *r["held_out"])
    return dict(nonzero=(off != 0).float().mean().item(), largest=off.abs().max().item(),
                true_density=(total != 0).float().mean().item(), claimed=pruner.density(), grads=grads,
                reported=before, sparse=after)


a, b = look(run("sparse_shapes")), look(run("sparse_shapes", fix))
print("as written", a)
print("repaired  ", b)
assert a["grads"] == 0 and b["grads"] == 0                    # the masked gradients are zero in both
assert a["nonzero"] > 0.9 and b["nonzero"] == 0               # and yet the pruned weights move
assert a["true_density"] > 0.9 and a["claimed"] < 0.11 and abs(b["true_density"] - b["claimed"]) < 1e-3
assert a["reported"] - a["sparse"] > 0.03 and abs(b["reported"] - b["sparse"]) < 1e-6
