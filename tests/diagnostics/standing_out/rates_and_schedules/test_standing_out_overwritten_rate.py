"""Checks the sentence about a line that sets the rate that a scheduler sets, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(opt, 2)
for step in range(6):
    for group in opt.param_groups:
        group["lr"] = 0.1 * min(1, (step + 1) / 4)  #!
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
    scheduler.step()
"""
SETS = BODY[BODY.index("    for group") : BODY.index("    opt.zero")]
WRONG = {
    "groups": BODY,
    "the only group": BODY.replace(SETS, "    opt.param_groups[0]['lr'] = 0.1 / (step + 1)  #!\n"),
}
LAST = BODY.replace(SETS, "    rate = scheduler.get_last_lr()[0] * min(1, (step + 1) / 4)\n" + SETS)
WRONG |= {
    "a variable": BODY.replace(SETS, "    rate = config['lr'] / (step + 1)\n" + SETS).replace(
        "0.1 * min(1, (step + 1) / 4)", "rate").replace("for step", "config = {'lr': 0.1}\nfor step", 1),
    "a function that the loop calls": BODY.replace("0.1 * min(1, (step + 1) / 4)", "rate_at(step)").replace(
        "for step", "def rate_at(step):\n    return 0.1 / (step + 1)\nfor step", 1),
}  # fmt: skip
RIGHT = {
    "a warm-up of the scheduler's rate": LAST.replace("0.1 * min(1, (step + 1) / 4)", "rate"),
    "a floor": BODY.replace(SETS, "").replace("    scheduler.step()\n", """\
    scheduler.step()
    rate = opt.param_groups[0]["lr"]
    floor = max(rate, 0.03)
    opt.param_groups[0]["lr"] = floor
"""),
    "a floor of a function": BODY.replace("0.1 * min(1, (step + 1) / 4)", "max(rate_of(opt), 0.03)").replace(
        "for step", "def rate_of(optimizer):\n    return optimizer.param_groups[0]['lr']\nfor step", 1),
    "a rate that the scheduler changes before the step": BODY.replace("    scheduler.step()\n", "").replace(
        "    opt.zero_grad()", "    scheduler.step()\n    opt.zero_grad()"),
    "a warm-up": BODY.replace(SETS, "    if step < 2:\n        opt.param_groups[0]['lr'] = 0.01 * step\n"),
    "a factor": BODY.replace("0.1 * min", "group['lr'] * min"),
    "no scheduler": BODY.replace("    scheduler.step()\n", ""),
    "once": BODY.replace(SETS, "").replace("for step", "opt.param_groups[0]['lr'] = 0.2\nfor step"),
    "of another optimizer": BODY.replace("for group in opt", "for group in other").replace(
        "scheduler = ", "other = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)\nscheduler = "
    ),
    "of another dict": BODY.replace(SETS, "    log['lr'] = step\n").replace("for step", "log = {}\nfor step"),
    "in another loop": BODY.replace("    scheduler.step()\n", "").replace(SETS, SETS[:-5] + "\n")
    + "for step in range(6):\n    opt.step()\n    scheduler.step()\n",
}  # fmt: skip
WORDS = "a step uses only one of the two"


@pytest.mark.parametrize("name", WRONG)
def test_a_rate_that_two_lines_set_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "in which a `StepLR` changes it, 6 times" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_rates_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
