import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("grad_output.masked_fill_(inside, 0.0)", "grad_output.masked_fill(inside, 0.0)")
made = run("spectra_resnet")
fixed = run("spectra_resnet", repair)


def gradients(result, state):
    """Autograd's gradient at `state` and finite differences of it along itself and a random direction, in double."""
    torch.manual_seed(0)
    model = result["SpectraNet"]().double()
    model.load_state_dict(state)
    x, y = made["train_x"][:64].double(), made["train_y"][:64].double()
    loss = lambda: (model(x) - y).square().mean()
    loss().backward()
    grad = flat_grad(model)
    direction = model.stem.weight.grad / model.stem.weight.grad.norm()
    slope = (model.stem.weight.grad * direction).sum().item()
    with torch.no_grad():
        model.stem.weight += 1e-6 * direction
        up = loss().item()
        model.stem.weight -= 2e-6 * direction
        down = loss().item()
    return grad, slope, (up - down) / 2e-6


for state in (made["SpectraNet"]().state_dict(), fixed["model"].state_dict()):
    bad, bad_slope, bad_numeric = gradients(made, state)
    good, good_slope, good_numeric = gradients(fixed, state)
    print(rel(bad, good), bad_slope, bad_numeric, good_slope, good_numeric)
    assert rel(bad, good) > 0.1
    assert abs(good_slope - good_numeric) < 1e-3 * abs(good_numeric)
    assert abs(bad_slope - bad_numeric) > 0.05 * abs(bad_numeric)
rmse = lambda r: r["rmse"](r["model"], r["test_x"], r["test_y"])
print(rmse(made), rmse(fixed))
assert rmse(fixed) < rmse(made)
