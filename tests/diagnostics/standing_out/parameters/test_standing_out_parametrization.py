"""Checks the sentence about parameters that the removal of a parametrization leaves to the optimizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
from torch.nn.utils import parametrizations as norms, parametrize
net = nn.Sequential(norms.weight_norm(nn.Linear(4, 8)), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(16, 4)
def steps(count):
    for _ in range(count):
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()
"""
PLAIN = (
    START
    + """\
steps(3)
parametrize.remove_parametrizations(net[0], "weight")  #!
norms.weight_norm(net[0])
steps(3)
"""
)
WRONG = {
    "removed and registered again": PLAIN,
    "only removed": PLAIN.replace("norms.weight_norm(net[0])\n", ""),
    "without gradients": START
    + """\
@torch.no_grad()
def export(model):
    for part in model:
        if parametrize.is_parametrized(part):
            parametrize.remove_parametrizations(part, "weight")  #!
            print(part(x).mean().item())
            norms.weight_norm(part)
for _ in range(3):
    steps(2)
    export(net)
""",
}
RIGHT = {
    "at the end": START + "steps(3)\nparametrize.remove_parametrizations(net[0], 'weight')\nprint(net(x).mean())\n",
    "a new optimizer": PLAIN.replace("  #!", "").replace(
        "norms.weight_norm(net[0])\nsteps", "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nsteps"),
    "before the training": START.replace("opt =", "parametrize.remove_parametrizations(net[0], 'weight')\nopt =")
    + "steps(3)\n",
    "one parameter stays": PLAIN.replace("  #!", "").replace("weight_norm", "orthogonal"),
}  # fmt: skip
WORDS = "out of the module"


@pytest.mark.parametrize("name", WRONG)
def test_parameters_of_a_removed_parametrization_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_removal_that_no_later_step_meets_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
