"""Checks the sentence about a learning rate that is set between two steps of a scheduler, which sets it back."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOOP = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([{{"params": body.parameters(), "lr": 0.0}}, {{"params": head.parameters(), "lr": 0.1}}])
schedule = torch.optim.lr_scheduler.{}
for step in range(30):
    if step == 10:
        {}
    head(body(torch.randn(8, 4))).square().mean().backward()
    opt.step()
    opt.zero_grad()
    schedule.step()
"""
WRONG = {
    "LambdaLR": LOOP.format("LambdaLR(opt, lambda n: 1 / (1 + n))", 'opt.param_groups[0]["lr"] = 0.05  #!'),
    "CyclicLR": LOOP.format("CyclicLR(opt, [0.01, 0.01], [0.02, 0.02], 5)", 'opt.param_groups[1]["lr"] = 0.2  #!'),
    "in a loop over the groups": LOOP.format(
        "LambdaLR(opt, lambda n: 1.0)", 'for group in opt.param_groups: group["lr"] = 0.5  #!'
    ),
    "lower, once, by a flag": "cut = False\n" + LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass")
    .replace("    if step == 10:\n        pass\n", "")
    + "    if not cut and step >= 9:\n        for group in opt.param_groups:\n            group.update(lr=0.01)  #!\n"
    "        cut = True\n",
    "lower, in a loop over epochs": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "for step in range(30):\n    if step == 10:\n        pass\n",
        "for epoch in range(3):\n  if epoch == 1: opt.param_groups[1]['lr'] *= 0.1  #!\n  for step in range(10):\n",
    ),
    "lower, once, in an object": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "plan.cool()").replace("== 10", ">= 10")
    .replace("for step", "class Plan:\n    done = False\n    def cool(self):\n        if self.done: return\n"
    "        opt.param_groups[1]['lr'] = 0.01  #!\n        self.done = True\nplan = Plan()\nfor step"),
}  # fmt: skip
RIGHT = {
    "nothing is set": LOOP.format("LambdaLR(opt, lambda n: 1 / (1 + n))", "pass"),
    "a scheduler that goes on from there": LOOP.format("StepLR(opt, 100)", 'opt.param_groups[0]["lr"] = 0.05'),
    "lower, once, for a bad batch": "braked = False\n" + LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "    if step == 10:\n        pass\n    head(", "    loss = head("
    ).replace("square().mean().backward()", "square().mean() * (99 if step == 12 else 1)").replace(
        "    opt.step()",
        "    if loss.item() > 9 and not braked:\n        opt.param_groups[1]['lr'] = 1e-5\n        braked = True\n"
        "    loss.backward()\n    opt.step()",
    ),
    "the base rate too": LOOP.format(
        "LambdaLR(opt, lambda n: 1.0)", 'opt.param_groups[0]["lr"] = schedule.base_lrs[0] = 0.05'
    ),
    "a warm-up by hand, in each step": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "    head(", '    opt.param_groups[1]["lr"] = 0.01 * (step + 1)\n    head('
    ),
    "near the end": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace("step == 10", "step == 28").replace(
        "        pass", '        opt.param_groups[1]["lr"] = 0.5'
    ),
    "a phase of its own": LOOP.format("LambdaLR(opt, lambda n: 1.0)", 'opt.param_groups[1]["lr"] = 0.01').replace(
        "    schedule.step()", "    if not 10 <= step < 18: schedule.step()"
    ),
    "before the schedule begins": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "for step", 'opt.param_groups[1]["lr"] = 0.01\nfor step'
    ),
    "lower for one batch": LOOP.format("LambdaLR(opt, lambda n: 1.0)", 'opt.param_groups[1]["lr"] = 0.01'),
    "lower for one batch, whenever a flag says so": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "for step", "low = False\nfor step").replace("        pass", "        low = True").replace(
        "    head(", "    if low:\n        opt.param_groups[1]['lr'] = 0.01\n        low = False\n    head("),
    "the base rate too, once": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "for step", "cut = False\nfor step").replace("        pass", (
        "        opt.param_groups[1]['lr'] = 0.01\n        schedule.base_lrs = [0.0, 0.01]\n        cut = True")),
    "lower for one batch, with a warning that comes once": LOOP.format("LambdaLR(opt, lambda n: 1.0)", "pass").replace(
        "for step", "warned = False\nfor step").replace("        pass", (
        "        opt.param_groups[1]['lr'] = 0.01\n        if not warned: print('low')\n        warned = True")),
    "almost the same": LOOP.format("LambdaLR(opt, lambda n: 1.0)", 'opt.param_groups[1]["lr"] = 0.12'),
}  # fmt: skip
WORDS = "sets it back"


@pytest.mark.parametrize("name", WRONG)
def test_a_rate_that_is_set_back_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "after 10 steps of its" in found.text
    assert "at each of the 20 steps that are left" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_a_rate_that_lasts_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
