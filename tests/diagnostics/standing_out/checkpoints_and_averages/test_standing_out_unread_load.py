"""Checks the sentences about loads that nothing reads, and about averages that nothing updates."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOAD = """\
def build():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

def train(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        net(torch.randn(8, 3)).square().mean().backward()
        opt.step()

first = build()
train(first)
other = build()
other.load_state_dict(first.state_dict())  #!
net = build()
train(net)
"""
AVERAGE = """\
from torch.optim.swa_utils import AveragedModel
net = nn.Linear(3, 1)
average = AveragedModel(net)  #!
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3)).square().mean().backward()
    opt.step()
UPDATE
with torch.no_grad():
    print(average(torch.ones(1, 3)).shape, end="")
"""


def test_a_load_into_a_module_that_nothing_uses_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, LOAD) if "no call uses" in each.text)
    assert found.text == "`other.load_state_dict(...)` loads 4 tensors of a module that no call uses"
    assert found.labels[0].span.line == marked(LOAD)


@pytest.mark.parametrize(
    "text",
    [
        LOAD.replace("net = build()\n", "net = other\n"),
        LOAD + "print(other(torch.ones(1, 3)).shape, end='')\n",
        LOAD.replace("other = build()", "other = first"),
        LOAD.replace("net = build()\n", "import copy\nnet = copy.deepcopy(other)\n"),
        LOAD.replace("net = build()\ntrain(net)", "print(other.eval(), end='')"),
    ],
    ids=["trained", "read at the end", "used before", "copied", "shown"],
)
def test_other_loads_are_left_alone(tmp_path: Path, text: str) -> None:
    assert [each.text for each in sentences(tmp_path, text) if "no call uses" in each.text] == []


def test_an_average_without_an_update_is_named(tmp_path: Path) -> None:
    text = AVERAGE.replace("UPDATE", "")
    (found,) = (each for each in sentences(tmp_path, text) if "`update_parameters()`" in each.text)
    assert found.text.startswith("`AveragedModel(net)` has the values that the parameters had there")
    assert found.labels[0].span.line == marked(text)


def test_an_average_with_an_update_is_left_alone(tmp_path: Path) -> None:
    text = AVERAGE.replace("UPDATE", "average.update_parameters(net)")
    assert [each.text for each in sentences(tmp_path, text) if "`update_parameters()`" in each.text] == []


def test_a_later_average_says_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    text = AVERAGE.replace("UPDATE", "average.update_parameters(net)\nlater = AveragedModel(net)\n"
                           "later(torch.ones(1, 3))")  # fmt: skip
    assert [each.text for each in sentences(tmp_path, text) if "`update_parameters()`" in each.text] == []


def test_a_count_that_batch_norm_adds_to_a_dict_itself_is_no_load(tmp_path: Path) -> None:
    text = LOAD.replace("nn.Tanh()", "nn.BatchNorm1d(4)").replace(
        "other.load_state_dict(first.state_dict())", "other.load_state_dict({'x.weight': torch.zeros(1)}, strict=False)"
    )
    words = [each.text for each in sentences(tmp_path, text)]
    assert [each for each in words if "no call uses" in each or "onto itself" in each] == []
    assert any("loads nothing" in each for each in words)
