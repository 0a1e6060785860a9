import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
OLD = "        weights = weights / weights.sum(dim=-1, keepdim=True)\n"
NEW = "        weights = weights / weights.sum(dim=-1, keepdim=True) if self.k > 1 else weights\n"


def measure(*edits):
    loc = run("harbor_dialects", *edits, capture=("main",)).locals["main"]
    model, data = loc["model"], loc["data"]
    x, y, _ = data.sample(2048)
    model.zero_grad()
    F.mse_loss(model(x)[0], y).backward()
    g_router = model.router.weight.grad.norm().item()
    g_expert = sum(p.grad.norm().item() for p in model.experts.parameters() if p.grad is not None)
    return g_router, g_expert, loc["test_mse"]


bad, good = measure(), measure((OLD, NEW))
print("router grad, expert grad, held-out mse:", bad, good)
assert bad[0] < 1e-6 and bad[1] > 1e-3
assert good[0] > 1e-3
