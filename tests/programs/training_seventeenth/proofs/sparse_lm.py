import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel

FIX = [("best, chosen = scores.topk(TOP_K, dim=-1)\n        weights = F.softmax(best, dim=-1)",
        "weights, chosen = F.softmax(scores, dim=-1).topk(TOP_K, dim=-1)")]
SAVE = ("optimizer = torch.optim", "start = model.ffn.gate.weight.detach().clone()\noptimizer = torch.optim")
bad, good = run("sparse_lm", SAVE), run("sparse_lm", SAVE, *FIX)
move = [rel(r["model"].ffn.gate.weight.detach(), r["start"]) for r in (bad, good)]
grad = [r["model"].ffn.gate.weight.grad.abs().max().item() for r in (bad, good)]
print("gate moved", move, "last gate gradient", grad, "accuracy", bad["accuracy"], good["accuracy"])
assert move[0] == 0.0 and grad[0] == 0.0
assert move[1] > 0.05 and grad[1] > 0
