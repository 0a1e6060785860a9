"""Checks the sentence about parameters that are moved for a second backward pass, and not moved back."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    x = torch.randn(8, 4)
    opt.zero_grad()
    net(x).square().mean().backward()
"""
ASCEND = """\
    moves = []
    with torch.no_grad():
        norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        for p in net.parameters():
            move = p.grad * (0.05 / norm)
            p.add_(move)  #!
            moves.append(move)
"""
SECOND = """\
    opt.zero_grad()
    net(x).square().mean().backward()
"""
BACK = """\
    with torch.no_grad():
        for p, move in zip(net.parameters(), moves):
            p.sub_(move)
"""
STEP = "    opt.step()\n"
WRONG = {
    "not moved back": START + ASCEND + SECOND + STEP,
    "by alpha": START + ASCEND.replace("p.add_(move)", "p.add_(p.grad, alpha=0.05)") + SECOND + STEP,
    "by .data": START + ASCEND.replace("p.add_(move)", "p.data += move") + SECOND + STEP,
}
RIGHT = {
    "moved back": START + ASCEND + SECOND + BACK + STEP,
    "moved back after the step": START + ASCEND + SECOND + STEP + BACK,
    "copied back": START + "    before = [p.detach().clone() for p in net.parameters()]\n" + ASCEND + SECOND
    + "    with torch.no_grad():\n        for p, value in zip(net.parameters(), before):\n            p.copy_(value)\n"
    + STEP,
    "a descent for another loss": START + ASCEND.replace("p.add_(move)", "p.sub_(move)") + SECOND + STEP,
    "a descent by alpha": START + "    rate = 0.05\n"
    + ASCEND.replace("p.add_(move)", "p.add_(p.grad, alpha=-rate)") + SECOND + STEP,
    "a descent by a negative product": START + "    rate = 0.05\n"
    + ASCEND.replace("p.grad *", "-rate * p.grad *") + SECOND + STEP,
    "a descent by a copy": START + ASCEND.replace("p.add_(move)", "p.copy_(p - move)") + SECOND + STEP,
    "an ascent on what is to be forgotten": START.replace("net(x)", "net(x[:3])") + ASCEND
    + SECOND.replace("net(x)", "net(x[3:])") + STEP,
    "another batch for each pass of one function": (START + ASCEND + SECOND + STEP).replace(
        "net = ", "def fit(x):\n    net(x).square().mean().backward()\nnet = ").replace(
        "    net(x).square().mean().backward()\n    m", "    fit(torch.randn(8, 4))\n    m").replace(
        "    net(x).square().mean().backward()\n    opt", "    fit(torch.randn(8, 4))\n    opt"),
    "noise": START + ASCEND.replace("p.grad *", "torch.randn_like(p) *") + SECOND + STEP,
    "one pass": START + STEP,
    "two passes": START + SECOND.replace("    opt.zero_grad()\n", "") + STEP,
}  # fmt: skip
WORDS = "begins at the moved values"


@pytest.mark.parametrize("name", WRONG)
def test_parameters_that_are_not_moved_back_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_parameters_that_are_moved_back_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


INNER = """\
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for task in range(5):
    a, b = torch.randn(8, 4), torch.randn(8, 1)
    for _ in range(2):
        slopes = torch.autograd.grad((net(a) - b).square().mean(), list(net.parameters()))
        with torch.no_grad():
            for p, slope in zip(net.parameters(), slopes):
                p -= 0.1 * slope  #!
    opt.zero_grad()
    net(a).square().mean().backward()
    RESTORE
    opt.step()
"""
KEPT = "`p -= ...` moves `net.weight` and `net.bias` along what `autograd.grad()` returns before each of 4 steps"


def test_an_inner_loop_that_moves_the_weights_themselves_is_named(tmp_path: Path) -> None:
    body = INNER.replace("RESTORE", "pass")
    (found,) = (each for each in sentences(tmp_path, body) if "autograd.grad" in each.text)
    assert found.text.startswith(KEPT)
    assert found.labels[0].span.line == marked(body)


def test_an_inner_loop_that_moves_them_back_is_left_alone(tmp_path: Path) -> None:
    body = INNER.replace("    for _ in", "    first = [p.detach().clone() for p in net.parameters()]\n    for _ in")
    back = "[p.data.copy_(value) for p, value in zip(net.parameters(), first)]"
    assert [each.text for each in sentences(tmp_path, body.replace("RESTORE", back)) if "moves" in each.text] == []


def test_a_descent_for_another_loss_before_each_step_is_left_alone(tmp_path: Path) -> None:
    body = INNER.replace("RESTORE", "pass").replace("net(a).square().mean()", "nn.functional.mse_loss(net(a), b)")
    assert [each.text for each in sentences(tmp_path, body) if "moves" in each.text] == []


FIRST_ORDER = """\
meta, fast = nn.Linear(4, 2), nn.Linear(4, 2)
outer, inner = torch.optim.Adam(meta.parameters(), 1e-2), torch.optim.SGD(fast.parameters(), 0.1)
for task in range(6):
    for f, m in zip(fast.parameters(), meta.parameters()):
        f.data.copy_(m.data)
    x = torch.randn(8, 4)
    inner.zero_grad()
    (fast(x) - x[:, :2] * (task + 1)).square().mean().backward()
    inner.step()
    inner.zero_grad()
    x = torch.randn(8, 4)
    (fast(x) - x[:, :2] * (task + 1)).square().mean().backward()
    for f, m in zip(fast.parameters(), meta.parameters()):
        m.grad = f.grad.clone()
    outer.step()
"""


def test_a_copy_that_gets_the_values_of_the_next_task_is_left_alone(tmp_path: Path) -> None:
    assert [each.text for each in sentences(tmp_path, FIRST_ORDER) if WORDS in each.text] == []
