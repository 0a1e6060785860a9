import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "trace_restorer"
REPAIR = ("grad_input = grad_output\n", "grad_input = grad_output.clone()\n")
PLAIN = ("BoundedStep.apply(x, limit)", "torch.clamp(x, -limit, limit)")


def gradient(*edits):
    space = run(NAME, *edits, as_main=False)
    torch.manual_seed(0)
    model = space["Restorer"]()
    noisy, clean = space["make_batch"](64)
    loss = torch.nn.functional.mse_loss(model(noisy), clean)
    loss.backward()
    return loss.item(), flat_grad(model), model.lift.weight.grad.clone()


loss, written, lift = gradient()
loss_repaired, repaired, lift_repaired = gradient(REPAIR)
loss_plain, plain, lift_plain = gradient(PLAIN)
print("rel error as written", rel(written, plain), "first layer", rel(lift, lift_plain), "repaired", rel(repaired, plain))
assert abs(loss - loss_plain) < 1e-6 and abs(loss_repaired - loss_plain) < 1e-6
assert rel(repaired, plain) < 1e-5
assert rel(written, plain) > 0.1
assert rel(lift, lift_plain) > 0.3

# The true directional derivative (central differences, double precision) agrees with the repaired gradient only.
def directional(*edits):
    space = run(NAME, *edits, as_main=False)
    torch.manual_seed(0)
    model = space["Restorer"]()
    noisy, clean = space["make_batch"](64)
    model.double(), model.zero_grad()
    noisy, clean = noisy.double(), clean.double()
    value = lambda: torch.nn.functional.mse_loss(model(noisy), clean)
    value().backward()
    weight, g = model.lift.weight, model.lift.weight.grad.clone()
    torch.manual_seed(1)
    d = torch.randn_like(weight)
    with torch.no_grad():
        weight.add_(1e-6 * d); up = value()
        weight.sub_(2e-6 * d); down = value()
    return ((up - down) / 2e-6).item(), (g * d).sum().item()


true, claimed = directional()
print("directional derivative", true, "as written", claimed)
assert abs(true - claimed) > 0.05 * abs(true)
true, claimed = directional(REPAIR)
print("directional derivative", true, "repaired", claimed)
assert abs(true - claimed) < 1e-3 * abs(true)
