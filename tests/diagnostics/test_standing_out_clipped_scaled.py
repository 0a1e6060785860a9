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
    "noise": SCALED.replace("p.grad.div_(scale)", "p.grad.add_(torch.randn_like(p.grad))"),
}  # fmt: skip
WORDS = "clips the gradients before"


def test_a_clip_of_multiplied_gradients_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, SCALED) if WORDS in each.text)
    assert "before `p.grad.div_(scale)`: `loss * scale` has multiplied the loss" in found.text
    assert found.labels[0].span.line == marked(SCALED)


@pytest.mark.parametrize("name", RIGHT)
def test_other_clips_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
