import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("x, y = table[:, :1], table[:, 1:]", "x, y = table[:, :1], table[:, 1]")

wrong, fixed = run("inducing_regression"), run("inducing_regression", FIX)
model, table = wrong["model"], wrong["table"]
with torch.no_grad():
    assert model.expected_log_lik(table[:50, :1], table[:50, 1:]).shape == (50, 50)
    assert model.expected_log_lik(table[:50, :1], table[:50, 1]).shape == (50,)


def error(program):
    grid = torch.linspace(-2.5, 2.5, 50).unsqueeze(1)
    with torch.no_grad():
        mean, _ = program["model"](grid)
    return (mean - program["truth"](grid.flatten())).pow(2).mean().sqrt().item()


def noise(program):
    return program["model"].noise.sqrt().item()


print("rms error", error(wrong), error(fixed), "noise", noise(wrong), noise(fixed), "bound", wrong["bound"], fixed["bound"])
assert error(wrong) > 0.5 and error(fixed) < 0.15
assert noise(wrong) > 0.6 and abs(noise(fixed) - 0.2) < 0.06
assert fixed["bound"] > wrong["bound"] + 0.5
