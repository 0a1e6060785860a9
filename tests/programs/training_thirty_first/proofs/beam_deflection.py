import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

GRAPH = ("(slope.sum(), x, retain_graph=True)", "(slope.sum(), x, create_graph=True)")
written, repaired = run("beam_deflection"), run("beam_deflection", GRAPH)


def gradients(r):
    x = torch.linspace(0.05, 0.95, 19).unsqueeze(1)
    loss = r["bending_loss"](r["model"], r["beam"], x)
    return torch.autograd.grad(loss, list(r["model"].parameters()), allow_unused=True)


# The bending term reaches no weight of the network as written; repaired, all but the last bias.
assert all(g is None for g in gradients(written))
assert sum(g is not None and g.norm() > 0 for g in gradients(repaired)) >= 5

# That is not what the formula says: the bending loss of the trained network changes with its weights.
model, beam = written["model"].double(), written["beam"].double()
x, values = torch.linspace(0.05, 0.95, 19, dtype=torch.double).unsqueeze(1), []
weight = model.net[2].weight
way = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)).double()
kept = weight.detach().clone()
for shift in (-1e-3, 1e-3):
    with torch.no_grad():
        weight.copy_(kept + shift * way)
    values.append(written["bending_loss"](model, beam, x).item())
with torch.no_grad():
    weight.copy_(kept)
slope = (values[1] - values[0]) / 2e-3
exact = run("beam_deflection", GRAPH)["bending_loss"](model, beam, x)
want = (torch.autograd.grad(exact, weight)[0] * way).sum().item()
print("slope along one direction", slope, want)
assert abs(slope) > 1e-3 and abs(slope - want) < 1e-2 * abs(want)

print(written["final_bending"], repaired["final_bending"], written["error"], repaired["error"])
print(written["beam"].stiffness.item(), repaired["beam"].stiffness.item())
assert repaired["final_bending"] < 0.3 * written["final_bending"]
