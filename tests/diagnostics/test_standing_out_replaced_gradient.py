"""Checks the sentence about lines that set a gradient several times for one step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TASKS = """\
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    for _ in range(5):
        loss = net(torch.randn(8, 3)).square().mean()
        grads = torch.autograd.grad(loss, list(net.parameters()))
        for p, g in zip(net.parameters(), grads):
            p.grad = g / 5  #!
    opt.step()
"""
SET = "p.grad = g / 5  #!"
RIGHT = {
    "a running sum": TASKS.replace("    for _ in range(5)", "    total = [0, 0]\n    for _ in range(5)").replace(
        "        for p, g in zip(net.parameters(), grads)", "        total = [t + g for t, g in zip(total, grads)]\n"
        "        for p, g in zip(net.parameters(), total)"),
    "one memory": TASKS.replace("    for _ in range(5)", "    total = [torch.zeros_like(p) for p in net.parameters()]\n"
        "    for _ in range(5)").replace("        for p, g in zip(net.parameters(), grads)", (
        "        for t, g in zip(total, grads):\n            t += g\n"
        "        for p, g in zip(net.parameters(), total)")).replace(SET, "p.grad = g.view_as(p)"),
    "added": TASKS.replace(SET, "p.grad = g / 5 if p.grad is None else p.grad + g / 5"),
    "one for a step": TASKS.replace("    opt.step()", "        opt.step()"),
    "read before the next": TASKS.replace("        for p, g", (
        "        print([p.grad.norm() for p in net.parameters() if p.grad is not None], end='')\n        for p, g")),
    "kept before the next": TASKS.replace(SET, "p.grad = g / 5\n            kept = g.norm()").replace(
        "range(5)", "range(1)"),
    "a backward pass and a mask": TASKS.replace("grads = torch.autograd.grad(loss, list(net.parameters()))", (
        "loss.backward()\n        grads = [p.grad * 0.5 for p in net.parameters()]")),
}  # fmt: skip
WORDS = "which uses only the last"


def test_a_gradient_that_is_set_for_each_task_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, TASKS) if WORDS in each.text)
    assert "`p.grad = ...` sets each gradient of `net.weight` and `net.bias` 5 times for a step" in found.text
    assert found.labels[0].span.line == marked(TASKS)


@pytest.mark.parametrize("name", RIGHT)
def test_a_gradient_that_is_used_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
