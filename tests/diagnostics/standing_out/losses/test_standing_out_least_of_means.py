"""Checks the sentence about losses that take the less of two means."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

PAIRS = """\
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def error(a, b):
    return (a - b).square().mean(1)
for _ in range(3):
    out, target, advantage = net(torch.randn(8, 3)), torch.randn(8, 2), torch.randn(8)
    ratio = out[:, 0].exp()
    {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TWO = "a, b = error(out[:4], target[:4]), error(out[4:], target[4:])\n    "
VALUE = (
    "cost, value, aim = nn.functional.smooth_l1_loss, out.sum(1), target[:, 0]\n    "
    "near = advantage + (value - advantage).clamp(-0.1, 0.1)\n    "
)
WRONG = {
    "two orders": "loss = torch.minimum(error(out, target).mean(), error(out.flip(1), target).mean())  #!",
    "a clipped objective": "loss = -torch.min((ratio * advantage).mean(), (ratio.clamp(0.8) * advantage).mean())  #!",
    "turned round": "loss = torch.max(-(ratio * advantage).mean(), -(ratio.clamp(0.8, 1.2) * advantage).mean())  #!",
    "a clipped value": VALUE + "loss = torch.stack([cost(value, aim), cost(near, aim)]).amax()  #!",
    "a clipped value, squared": VALUE
    + "loss = torch.max((value - aim).square().mean(), (near - aim).square().mean())  #!",
}
RIGHT = {
    "a clipped value, for each": VALUE + "loss = torch.max((value - aim) ** 2, (near - aim) ** 2).mean()",
    "the worse of two aims": VALUE + "loss = torch.stack([cost(value, aim), cost(near, 2 * aim)]).amax()",
    "one for each": "loss = torch.minimum(error(out, target), error(out.flip(1), target)).mean()",
    "the clipped objective": "loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()",
    "the worse of two groups": TWO + "loss = torch.maximum(a.mean(), b.mean())",
    "the better of two groups": TWO + "loss = torch.minimum(a.mean(), b.mean())",
    "the worse of two terms": "loss = torch.maximum(error(out, target).mean(), out.square().mean(1).mean())",
    "two batches": "loss = torch.minimum(error(out, target).mean(), error(net(torch.randn(8, 3)), target).mean())",
    "a bound": "loss = torch.minimum(error(out, target).mean(), torch.tensor(3.0))",
}
WORDS = "one choice for all of them"


@pytest.mark.parametrize("name", WRONG)
def test_the_less_of_two_means_is_named(tmp_path: Path, name: str) -> None:
    body = PAIRS.format(WRONG[name])
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert ("each a smooth_l1_loss" if "stack" in body else "each a mean") + " over 8 elements" in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, PAIRS.format(RIGHT[name])) if WORDS in each.text] == []


POSES = """\
net = nn.Sequential(nn.Flatten(), nn.Linear(18, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
cost = nn.functional.mse_loss
for _ in range(3):
    x, target = torch.randn(8, 6, 3), torch.randn(8, 4)
    out = net(x)
    a, b = cost(out, target), cost(out, -target)
    {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOP = """best = None
    for order in ([0, 1], [1, 0]):
        error = (out.view(8, 2, 2)[:, order] - target.view(8, 2, 2)).abs().mean()
        if best is None or error < best:  #!
            best = error
    loss = best"""
CHOSEN = {
    "an expression": "loss = a if a < b else b  #!",
    "a condition": "loss = b\n    if b.item() > a.item():  #!\n        loss = a",
    "the built-in function": "loss = min(a, b)  #!",
    "torch.where": "loss = torch.where(a < b, a, b)  #!",
    "torch.minimum": "loss = torch.minimum(a, b)  #!",
    "a loop over orders": LOOP,
}
GRID = (
    POSES.replace("nn.Sequential(nn.Flatten(), nn.Linear(18, 4))", "nn.Linear(2, 4)").replace("for _ in", (
        "axis = torch.linspace(-1, 1, 8)\nx = torch.stack(torch.meshgrid(axis, axis, indexing='ij'), -1) * 2\n"
        "target = torch.randn(8, 8, 4)\nfor _ in"))
    .replace("    x, target = torch.randn(8, 6, 3), torch.randn(8, 4)\n", "").replace("-target", "target.flip(0)")
    .format("loss = min(a, b)")
)  # fmt: skip
OTHERS = {
    "the greater": POSES.format("loss = a if a > b else b"),
    "one for each": POSES.format(
        "loss = torch.minimum((out - target).square().mean(1), (out + target).square().mean(1)).mean()"),
    "two aims": POSES.replace("-target)", "torch.randn(8, 4))").format("loss = min(a, b)"),
    "two models": POSES.replace("cost(out, -target)", "cost(net(x * 2), target)").format("loss = min(a, b)"),
    "points of one signal": POSES.replace("(8, 6, 3)", "(8, 18)").format("loss = min(a, b)"),
    "one volume, known up to its mirror image": GRID,
    "one signal, known up to its direction": GRID.replace("-1) * 2", "-1).float().flatten(0, 0)").replace(
        "min(a, b)", "a if a < b else b"),
    "one sample after the other": POSES.format(
        "loss = sum(min(cost(one, aim), cost(one, -aim)) "
        "for one, aim in zip(out.view(8, 2, 2), target.view(8, 2, 2)))"),
    "only printed": POSES.format("loss = a + b\n    print(min(a, b))"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_the_less_of_two_errors_of_a_batch_is_named(tmp_path: Path, name: str) -> None:
    body = POSES.replace("{}", CHOSEN[name])
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert "the less of two numbers, each a m" in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", OTHERS)
def test_other_choices_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, OTHERS[name]) if WORDS in each.text] == []
