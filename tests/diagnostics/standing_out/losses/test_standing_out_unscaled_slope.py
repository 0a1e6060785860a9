"""Checks the sentence about gradients of standardised predictions that are compared with unscaled slopes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

FIT = """\
F = nn.functional
pos = torch.randn(32, 3)
energy, forces = (3 * pos ** 2).sum(1), -6 * pos
scale = 1.0
mean, std = energy.mean(), energy.std()
target = (energy - mean) / std
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(4):
    idx = torch.randperm(32)[:8]
    x = pos[idx].clone().requires_grad_(True)
    e = model(x).squeeze(-1)
    f = -torch.autograd.grad(e.sum(), x, create_graph=True)[0]
    loss = F.mse_loss(e, target[idx])
    loss = loss + F.mse_loss(f, forces[idx])  #!
    opt.zero_grad(); loss.backward(); opt.step()
"""
SLOPE = "F.mse_loss(f, forces[idx])"
PLAIN = FIT.replace("  #!", "")
WRONG = {
    "forces": FIT,
    "slopes, by a square": FIT.replace(SLOPE, "(forces[idx] - f).pow(2).mean()"),
    "a loss module, and ones": FIT.replace(SLOPE, "nn.L1Loss()(f, forces[idx])").replace(
        "e.sum(), x", "e, x, torch.ones_like(e)"),
    "a method that standardises": FIT.replace("target = (energy - mean) / std", (
        "class Scaler:\n    def fit(self, e):\n        self.mean, self.std = e.mean(), e.std().clamp_min(1e-6)\n"
        "    def __call__(self, e):\n        return (e - self.mean) / self.std\n"
        "scaler = Scaler()\nscaler.fit(energy)\ntarget = scaler(energy)")),
}  # fmt: skip
RIGHT = {
    "multiplied": PLAIN.replace("(f, forces", "(f * std, forces"),
    "forces that are divided, too": PLAIN.replace("target =", "forces = forces / std\ntarget ="),
    "forces that are divided by a number": PLAIN.replace("target =", "forces = forces / std.item()\ntarget ="),
    "forces that are divided before": PLAIN.replace("mean, std =", "forces = forces / energy.std()\nmean, std ="),
    "divided in NumPy": PLAIN.replace("mean, std =", (
        "import numpy as np\nscale = float(np.std(energy.numpy()))\n"
        "energy, forces = [torch.from_numpy(each.numpy() / scale) for each in (energy, forces)]\nmean, std =")),
    "divided by a plain number": PLAIN.replace("mean, std =", (
        "scale = 1 / float(energy.std())\nenergy, forces = energy * scale, forces * scale\nmean, std =")),
    "in units of the deviation": PLAIN.replace("mean, std =", (
        "scale = energy.std()\nenergy, forces = energy / scale, forces / scale\nmean, std =")),
    "forces of energies in other units": PLAIN.replace("mean, std =", (
        "pos.requires_grad_(True)\nenergy = (3 * pos ** 2).sum(1)\nenergy = energy / energy.detach().std()\n"
        "forces = -torch.autograd.grad(energy.sum(), pos)[0]\n"
        "pos, energy = pos.detach(), energy.detach()\nmean, std =")),
    "the sum in units": PLAIN.replace("e.sum(), x", "(e * std + mean).sum(), x"),
    "without the mean alone": PLAIN.replace(" / std", ""),
    "positions in the same units": PLAIN.replace("target =", "pos = pos / std\ntarget ="),
    "energies in their units": PLAIN.replace("e, target[idx]", "e * std + mean, energy[idx]").replace("e.sum()", (
        "(e * std).sum()")),
}  # fmt: skip
WORDS = "compares the gradient of a prediction"


@pytest.mark.parametrize("name", WRONG)
def test_slopes_that_are_not_divided_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_slopes_in_the_same_units_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
