import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

NAME = "molecule_pooling"
REPAIR = ("        return kept, (", "        kept = kept * top[..., None]\n        return kept, (")

bad, good = run(NAME), run(NAME, REPAIR)
torch.manual_seed(7)
start = {name: p.detach() for name, p in bad["MoleculeNet"]().named_parameters()}
for name, p in bad["net"].named_parameters():
    assert in_optimizer(p, bad["optimizer"])
    if name == "pooling.score.weight":
        assert p.grad is None and (p == start[name]).all()    # the scorer never has a gradient: it stays random
    else:
        assert p.grad is not None and rel(p.detach(), start[name]) > 0.01
score = good["net"].pooling.score.weight
assert score.grad is not None and score.grad.norm() > 0
assert rel(score.detach(), start["pooling.score.weight"]) > 0.1
assert good["result"] > bad["result"] + 0.03
print("proved", bad["result"], good["result"])
