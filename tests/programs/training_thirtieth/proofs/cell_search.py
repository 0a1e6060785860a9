import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch
import torch.nn.functional as F

REPAIR = ("        loss.backward()\n", "        self.weight_opt.zero_grad()\n        loss.backward()\n")


def one_step(*edits):
    ns = run("cell_search", *edits, as_main=False)
    torch.manual_seed(0)
    model = ns["SearchCell"](16, 20, 3)
    searcher = ns["Searcher"](model, max_norm=1e9)
    searcher.arch_opt.step = lambda: None  # the mixing logits stay, so the gradients below are at the same point
    train = torch.randn(32, 16), torch.randint(0, 3, (32,))
    valid = torch.randn(32, 16), torch.randint(0, 3, (32,))
    weights = model.weights()
    cat = lambda grads: torch.cat([g.flatten() for g in grads])
    g_train = cat(torch.autograd.grad(F.cross_entropy(model(train[0]), train[1]), weights))
    g_valid = cat(torch.autograd.grad(F.cross_entropy(model(valid[0]), valid[1]), weights))
    seen = []
    searcher.weight_opt.step = lambda: seen.append(cat([p.grad.clone() for p in weights]))
    searcher.search_step(train, valid)
    return seen[0], g_train, g_valid


used, g_train, g_valid = one_step()
print(rel(used, g_train), rel(used, g_train + g_valid))
assert rel(used, g_train + g_valid) < 1e-5 and rel(used, g_train) > 0.3
used, g_train, g_valid = one_step(REPAIR)
assert rel(used, g_train) < 1e-5

written = run("cell_search", capture=("main",)).locals["main"]["results"]
repaired = run("cell_search", REPAIR, capture=("main",)).locals["main"]["results"]
print(written, repaired)
assert written["valid"][1] - written["test"][1] > 0.1  # the weights have fitted the split that judges the cell
assert written["valid"][1] - repaired["valid"][1] > 0.1
