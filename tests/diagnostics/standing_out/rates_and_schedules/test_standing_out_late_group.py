"""Checks the sentence about a group that is added later, and whose rate no line sets as it does that of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOOP = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
base = [group["lr"] for group in opt.param_groups]
for step in range(40):
    if step == 15:
        opt.add_param_group({"params": body.parameters(), "lr": 0.02})  #!
    for group, rate in zip(opt.param_groups, base):
        group["lr"] = rate * (1 - step / 40)
    head(body(torch.randn(8, 4))).square().mean().backward()
    opt.step()
    opt.zero_grad()
"""
SET = '        group["lr"] = rate * (1 - step / 40)\n'
TWO = LOOP.replace("head = nn.Linear(4, 4),", "head = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)),").replace(
    'opt.add_param_group({"params": body.parameters(), "lr": 0.02})', (
        'for part in body: opt.add_param_group({"params": part.parameters(), "lr": 0.02})'))  # fmt: skip
WRONG = {"one group": LOOP, "two groups": TWO}
PLAIN = LOOP.replace("  #!", "")
RIGHT = {
    "all groups": PLAIN.replace("zip(opt.param_groups, base)", "zip(opt.param_groups, [0.1, 0.02])"),
    "a base that is noted too": PLAIN.replace('"lr": 0.02})', '"lr": 0.02})\n        base.append(0.02)'),
    "from the beginning": PLAIN.replace("opt.add", "pass  # opt.add")
    .replace(
        "opt = torch.optim.SGD(head.parameters(), lr=0.1)",
        'opt = torch.optim.SGD([{"params": head.parameters()}, {"params": body.parameters()}], lr=0.1)',
    )
    .replace("opt.param_groups, base)", "opt.param_groups[:1], base)"),
    "the first group alone": PLAIN.replace("    for group, rate in zip(opt.param_groups, base):\n", "").replace(
        SET, '    opt.param_groups[0]["lr"] = 0.1 * (1 - step / 40)\n'
    ),
    "some groups": PLAIN.replace("zip(opt.param_groups, base)", "zip(opt.param_groups[:1], base)"),
    "no rate changes": PLAIN.replace(SET, '        group["lr"] = rate\n'),
    "a warm-up that has ended": PLAIN.replace("(1 - step / 40)", "min(1, (step + 1) / 10)"),
    "marked, before the first step": PLAIN.replace("step == 15", "step == 0"),
    "a few steps": PLAIN.replace("step == 15", "step == 35"),
}
WORDS = "a group that is added later"


@pytest.mark.parametrize("name", WRONG)
def test_a_group_that_keeps_its_rate_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "is 0.02 at each of its steps" in found.text
    assert "25 of them with a gradient, while that of the group of `head.weight` and" in found.text
    assert ("so it is with 1 more" in found.text) is (name == "two groups")


@pytest.mark.parametrize("name", RIGHT)
def test_a_group_whose_rate_is_set_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
