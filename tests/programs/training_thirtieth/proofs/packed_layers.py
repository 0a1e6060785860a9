import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

EXPAND = ("weight_decay=1e-4", "weight_decay=0.0")


def drift(*edits):
    ns = run("packed_layers", *edits, as_main=False)
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(3)
    first, second = ns["make_task"](generator), ns["make_task"](generator)
    model = ns["PackedNet"](20, 48, 4, 2)
    ns["learn_task"](model, 1, first[0])
    kept = [(layer.owner == 1) for layer in model.layers]
    before = torch.cat([layer.weight.detach()[m].clone() for layer, m in zip(model.layers, kept)])
    acc_before = ns["accuracy"](model, 1, first[1])
    ns["learn_task"](model, 2, second[0])
    after = torch.cat([layer.weight.detach()[m].clone() for layer, m in zip(model.layers, kept)])
    return rel(after, before), acc_before, ns["accuracy"](model, 1, first[1])


moved, acc, acc_later = drift()
print("as written", moved, acc, acc_later)
assert moved > 0.3 and acc > 0.9 and acc_later < acc - 0.2
moved, acc, acc_later = drift(EXPAND)
print("repaired", moved, acc, acc_later)
assert moved == 0.0 and acc_later == acc
