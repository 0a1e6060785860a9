import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

FIX = ("adjoint = dz\n", "adjoint = dz + grad_path[k]\n")


def compare(prog):
    """Gradient of the Function against plain backpropagation through the same solver."""
    torch.manual_seed(0)
    model = prog["SpiralModel"]()
    target = prog["make_paths"](16)
    F.mse_loss(model(target[0]), target).backward()
    ours = flat_grad(model)
    model.zero_grad()
    z = model.start(target[0])
    states = [z]
    for _ in range(prog["STEPS"]):
        z = prog["midpoint"](model.field, z, prog["DT"])
        states.append(z)
    F.mse_loss(torch.stack(states), target).backward()
    return rel(ours, flat_grad(model))


bad, good = run("spiral_flow"), run("spiral_flow", FIX)
e_bad, e_good = compare(bad), compare(good)
print("gradient off by", e_bad, "repaired", e_good)
print("test error", bad["test_error"], "repaired", good["test_error"])
assert e_bad > 0.3 and e_good < 1e-4
assert good["test_error"] < 0.7 * bad["test_error"]
