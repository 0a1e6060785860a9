import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

SOFT = ("gate = F.softmax(top_logits, dim=-1)", "gate = F.softmax(logits, dim=-1).gather(-1, index)")
written = run("tariff_experts")
repaired = run("tariff_experts", SOFT)

# the router as it was right after construction
torch.manual_seed(11)
start = written["SparseMoE"](written["N_FEATURES"])

model = written["model"]
assert all(torch.equal(a, b) for a, b in zip(start.router.parameters(), model.router.parameters()))
assert rel(flat(model.experts), flat(start.experts)) > 0.1
x = torch.randn(64, written["N_FEATURES"])
model.zero_grad()
model(x).pow(2).mean().backward()
assert all(p.grad is not None and p.grad.abs().max() == 0 for p in model.router.parameters())
assert (model.route(x)[0] == 1).all()

assert rel(flat(repaired["model"].router), flat(start.router)) > 0.1
model = repaired["model"]
model.zero_grad()
model(x).pow(2).mean().backward()
assert all(p.grad.abs().max() > 1e-6 for p in model.router.parameters())
print("valid mse", written["valid_error"], "->", repaired["valid_error"])
assert repaired["valid_error"] < 0.8 * written["valid_error"]
