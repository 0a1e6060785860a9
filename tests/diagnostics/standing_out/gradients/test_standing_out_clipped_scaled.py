"""Checks the sentence about gradients that are clipped while they are multiplied."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCALED = """\
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scale = 1024.0
for _ in range(4):
    loss = net(torch.randn(8, 3)).square().mean()
    opt.zero_grad()
    (loss * scale).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  #!
    for p in net.parameters():
        p.grad.div_(scale)
    opt.step()
"""
RIGHT = {
    "divided first": SCALED.replace("    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  #!\n", "").replace(
        "    opt.step()", "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()"),
    "a loss that is not multiplied": SCALED.replace("(loss * scale)", "loss"),
    "not divided": SCALED.replace("    for p in net.parameters():\n        p.grad.div_(scale)\n", ""),
    "another factor": SCALED.replace("p.grad.div_(scale)", "p.grad.mul_(0.5)"),
    "another attribute of one object": SCALED.replace(
        "scale = 1024.0", "import types\ncfg = types.SimpleNamespace(a=8, b=0.5)").replace(
        "loss * scale", "loss * cfg.a").replace("div_(scale)", "div_(cfg.b)"),
    "a module's functions": "import math\n" + SCALED.replace("loss * scale", "loss * math.sqrt(2)").replace(
        "div_(scale)", "div_(math.cos(1))"),
    "the same factor again": SCALED.replace("div_(scale)", "mul_(scale)"),
    "the norm alone": SCALED.replace("1.0)  #!", 'float("inf"))'),
    "a threshold for multiplied gradients": SCALED.replace("1.0)  #!", "1.0 * scale)"),
    "a threshold that a line computes": SCALED.replace("for _ in", "most = 2 * scale\nfor _ in").replace(
        "1.0)  #!", "most)"),
    "clipped again": SCALED.replace(
        "    opt.step()", "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()"),
    "noise on the clipped sum": SCALED.replace(
        "        p.grad.div_", "        p.grad.add_(torch.randn_like(p.grad))\n        p.grad.div_"),
    "noise": SCALED.replace("p.grad.div_(scale)", "p.grad.add_(torch.randn_like(p.grad))"),
}  # fmt: skip
WORDS = "clips the gradients before"


@pytest.mark.parametrize("undo", ["div_(scale)", "mul_(1.0 / scale)"])
def test_a_clip_of_multiplied_gradients_is_named(tmp_path: Path, undo: str) -> None:
    (found,) = (each for each in sentences(tmp_path, SCALED.replace("div_(scale)", undo)) if WORDS in each.text)
    assert f"before `p.grad.{undo}`: `loss * scale` has multiplied the loss" in found.text
    assert found.labels[0].span.line == marked(SCALED)


@pytest.mark.parametrize("name", RIGHT)
def test_other_clips_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
