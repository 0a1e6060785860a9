"""Checks the sentence about a range test of the learning rate that the training goes on from."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import sentences

NET = """\
import copy

def test(net, opt):
    for k in range(20):
        for group in opt.param_groups:
            group["lr"] = 1e-5 * 2.0 ** k
        step(net, opt)

def step(net, opt):
    opt.zero_grad()
    net(torch.randn(8, 4)).tanh().square().mean().backward()
    opt.step()

net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
test(net, opt)
for group in opt.param_groups:
    group["lr"] = 1e-3
for _ in range(25):
    step(net, opt)
"""
WRONG = {
    "the same optimizer": NET,
    "another optimizer": NET.replace("for group in opt.param_groups:\n    group[\"lr\"] = 1e-3\n", (
        "opt = torch.optim.Adam(net.parameters(), lr=1e-3)\n")),
    "a scheduler": NET.replace(
        "        for group in opt.param_groups:\n            group[\"lr\"] = 1e-5 * 2.0 ** k\n", "").replace(
        "    for k in", (
        "    opt.param_groups[0]['lr'] = 1e-5\n    each = torch.optim.lr_scheduler.ExponentialLR(opt, 2.0)\n"
        "    for k in")).replace("        step(net, opt)\n\ndef", "        step(net, opt)\n        each.step()\n\ndef"),
}  # fmt: skip
WRONG["a long training"] = NET.replace("range(25)", "range(150)")
RISING = (
    NET[NET.index("def step") : NET.index("test(net, opt)\nfor")]
    + """\
for k in range(60):
    opt.param_groups[0]["lr"] = 1e-6 * 10 ** (k / 5) if k <= 20 else 1e-3 * 0.97 ** (k - 20)
    step(net, opt)
"""
)
LATER = WRONG["another optimizer"]
TWO_LINES = RISING.replace(
    '    opt.param_groups[0]["lr"] = 1e-6 * 10 ** (k / 5) if k <= 20 else 1e-3 * 0.97 ** (k - 20)\n',
    (
        """    if k <= 20:
        opt.param_groups[0]["lr"] = 1e-6 * 10 ** (k / 2.5)
    else:
        opt.param_groups[0]["lr"] = 1e-3 * 0.97 ** (k - 20)
"""
    ),
)
RIGHT = {
    "a warm-up by the line of the decay": RISING,
    "a warm-up in the loop of the decay": TWO_LINES,
    "a rate that no step uses": RISING + "opt.param_groups[0]['lr'] = 1e-5\n",
    "set back by arrays": NET.replace("test(net, opt)\nfor", (
        "first = [p.detach().clone() for p in net.parameters()]\ntest(net, opt)\n"
        "for p, q in zip(net.parameters(), first):\n    p.detach().numpy()[...] = q.numpy()\nfor")),
    "a warm-up of another optimizer": LATER.replace("1e-5 * 2.0", "1e-7 * 2.0").replace("Adam", "SGD"),
    "another kind of optimizer for a second part": LATER.replace("Adam(net.parameters(), lr=1e-3)", (
        "SGD(net.parameters(), lr=1e-3)")),
    "a second part after rates as of a training": LATER.replace("1e-5 * 2.0", "1e-8 * 2.0").replace(
        "lr=1e-3", "lr=1e-5"),
    "a long training from a copy": WRONG["a long training"].replace("test(net, opt)\nfor", (
        "first = copy.deepcopy(net.state_dict())\ntest(net, opt)\nnet.load_state_dict(first)\nfor")),
    "a search of a minimum": WRONG["a long training"].replace("test(net", "find_minimum(net").replace(
        "1e-5 * 2.0", "1e-7 * 2.0"),
    "a long warm-up": WRONG["a long training"].replace("= 1e-3", "= 2.0"),
    "a copy": NET.replace("test(net, opt)\nfor", (
        "other = copy.deepcopy(net)\ntest(other, torch.optim.Adam(other.parameters()))\nfor")),
    "set back": NET.replace("test(net, opt)\nfor", (
        "first = copy.deepcopy(net.state_dict())\ntest(net, opt)\nnet.load_state_dict(first)\nfor")),
    "a warm-up": NET.replace("= 1e-3", "= 2.0").replace("range(25)", "range(15)"),
    "a short warm-up": NET.replace("range(20)", "range(9)"),
    "a line": NET.replace("1e-5 * 2.0 ** k", "1e-5 + 0.5 * k"),
}  # fmt: skip
WORDS = "the training goes on from the parameters"


@pytest.mark.parametrize("name", WRONG)
def test_a_training_that_goes_on_from_a_range_test_is_named(tmp_path: Path, name: str) -> None:
    assert len([each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text]) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_other_rates_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
