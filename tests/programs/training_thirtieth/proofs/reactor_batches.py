import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("steps, *func.parameters())", "steps, *func.parameters(), func.condition)")
PLAIN = ("    return AdjointSolve.apply(func, x0, dt, steps, *func.parameters())",
         "    states = [x0]\n    for _ in range(steps):\n        states.append(midpoint(func, states[-1], dt))\n    return torch.stack(states)")
INIT = ("    losses = train(model, data)", "    start = [p.detach().clone() for p in model.encoder.parameters()]\n    losses = train(model, data)")
wrong, fixed, plain = run("reactor_batches", INIT), run("reactor_batches", INIT, FIX), run("reactor_batches", INIT, PLAIN)
moved = lambda g: [not torch.equal(a, b) for a, b in zip(g["start"], g["model"].encoder.parameters())]
assert not any(moved(wrong)) and all(p.grad is None for p in wrong["model"].encoder.parameters())
assert all(moved(fixed)) and all(moved(plain))
print("error", wrong["error"], fixed["error"], plain["error"])
assert wrong["error"] > 1.4 * fixed["error"]
# the repaired adjoint has the gradient of plain back-propagation, the dynamics' own part was right before
grads = {}
for key, g in (("wrong", wrong), ("fixed", fixed), ("plain", plain)):
    m = g["model"]
    m.load_state_dict(fixed["model"].state_dict())
    m.zero_grad()
    (m(fixed["fresh"]) - fixed["fresh"]).pow(2).mean().backward()
    grads[key] = m
assert rel(flat_grad(grads["fixed"]), flat_grad(grads["plain"])) < 1e-3
assert rel(flat_grad(grads["wrong"].dynamics), flat_grad(grads["plain"].dynamics)) < 1e-3
