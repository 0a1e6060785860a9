"""Checks the sentence about custom Functions whose backward writes into the gradient that it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

FUNCTION = """\
class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad[x.abs() > 1] = 0  #!
        return grad

"""
TRAIN = """\
first, last = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
for _ in range(3):
    h = first(torch.randn(8, 4))
    h = h + Clipped.apply(h)
    opt.zero_grad()
    last(h).square().mean().backward()
    opt.step()
"""
WRITE = "        grad[x.abs() > 1] = 0  #!\n        return grad\n"
WRONG = {
    "a residual connection": FUNCTION + TRAIN,
    "a product in place": FUNCTION.replace("grad[x.abs() > 1] = 0", "grad.mul_((x.abs() <= 1).float())") + TRAIN,
    "the other operand": FUNCTION + TRAIN.replace("h + Clipped.apply(h)", "Clipped.apply(h) + h"),
}
RIGHT = {
    "a new tensor": FUNCTION.replace(WRITE, "        return grad * (x.abs() <= 1).float()\n") + TRAIN,
    "a copy": FUNCTION.replace(
        WRITE, "        grad = grad.clone()\n        grad[x.abs() > 1] = 0\n        return grad\n"
    )
    + TRAIN,
    "no other branch": FUNCTION + TRAIN.replace("h + Clipped.apply(h)", "Clipped.apply(h)"),
}
WORDS = "writes into the gradient that it is given"


@pytest.mark.parametrize("name", WRONG)
def test_a_gradient_of_two_branches_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_gradient_of_its_own_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
