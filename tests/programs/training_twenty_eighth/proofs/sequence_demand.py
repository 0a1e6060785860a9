import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("filter(lambda p: p.requires_grad, model.parameters())", "[p for p in model.parameters() if p.requires_grad]")
LOOK = ("                optimizer.step()", '''                NORMS.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item())
                optimizer.step()''')
wrong_norms, right_norms = [], []
wrong = run("sequence_demand", LOOK, inject={"NORMS": wrong_norms})
right = run("sequence_demand", FIX, LOOK, inject={"NORMS": right_norms})
print(max(wrong_norms), max(right_norms), wrong["errors"], right["errors"])
assert max(wrong_norms) > 5 and max(right_norms) < 1.001
assert right["errors"][-1] < 0.7 * wrong["errors"][-1]
