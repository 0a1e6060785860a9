"""Checks the sentence about terms whose gradient counts in two backward passes before one step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "counts in two backward passes"
NETS = "body, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)\n"
SGD = "opt = torch.optim.SGD([*body.parameters(), *a.parameters(), *b.parameters()], lr=0.01)\n"
LOOP = (
    "for step in range(3):\n    opt.zero_grad()\n    h = body(torch.randn(8, 4)).tanh()\n"
    "    one, two = a(h).square().mean(), b(h).abs().mean()\n"
)

WRONG = {
    "a part first": (
        NETS + SGD + LOOP + "    one.backward(retain_graph=True)\n    total = one + 0.5 * two\n"
        "    total.backward()  #!\n    opt.step()\n",
        "the gradient of `one` counts in two backward passes before one step: `one.backward(retain_graph=True)` and",
    ),
    "the sum first": (
        NETS + SGD + LOOP + "    (one + two).backward(retain_graph=True)\n    two.backward()  #!\n    opt.step()\n",
        "the gradient of `two` counts",
    ),
    "a running sum": (
        NETS + SGD + LOOP + "    total = 0.0\n    for part in (one, two):\n        total = total + part\n"
        "        total.backward(retain_graph=True)  #!\n    opt.step()\n",
        "counts in two backward passes before one step: `total.backward(retain_graph=True)` runs both",
    ),
    "in functions": (
        NETS + SGD + "def first(one):\n    one.backward(retain_graph=True)\n    return one\n"
        "def second(one, two):\n    loss = (one + two) / 2\n    loss.backward()  #!\n" + LOOP
        + "    second(first(one), two)\n    opt.step()\n",
        "counts in two backward passes before one step: `one.backward(retain_graph=True)` and `loss.backward()` (as a",
    ),
    "added in place": (
        NETS + SGD + LOOP + "    loss = one * 1.0\n    loss.backward(retain_graph=True)\n    loss += two\n"
        "    loss.backward()  #!\n    torch.nn.utils.clip_grad_norm_(body.parameters(), 1.0)\n    opt.step()\n",
        WHAT,
    ),
}  # fmt: skip
RIGHT = {
    "two losses": NETS + SGD + LOOP + "    one.backward(retain_graph=True)\n    two.backward()\n    opt.step()\n",
    "cleared in between": NETS + SGD + LOOP + "    one.backward(retain_graph=True)\n"
    "    norm = body.weight.grad.norm()\n    opt.zero_grad()\n    (one + two / norm).backward()\n    opt.step()\n",
    "a step in between": NETS + SGD + LOOP + "    one.backward()\n    opt.step()\n    opt.zero_grad()\n"
    "    (a(body(torch.randn(8, 4))).mean() + b(torch.randn(8, 4)).mean()).backward()\n    opt.step()\n",
    "other parameters": NETS + SGD + LOOP + "    one.backward(retain_graph=True, inputs=list(a.parameters()))\n"
    "    (one + two).backward(inputs=[*body.parameters(), *b.parameters()])\n    opt.step()\n",
    "a gradient that is only looked at": NETS + SGD + LOOP
    + "    norm = torch.autograd.grad(one, body.weight, retain_graph=True)[0].norm()\n"
    "    (one + two / norm.item()).backward()\n    opt.step()\n",
    "a constant part": NETS + SGD + LOOP
    + "    two.backward(retain_graph=True)\n    (one + two.detach()).backward()\n    opt.step()\n",
    "batches": NETS + SGD + LOOP + "    (one + two).backward()\n    other = body(torch.randn(8, 4))\n"
    "    (a(other).mean() + b(other).mean()).backward()\n    opt.step()\n",
    "reversed on purpose": NETS + SGD + LOOP
    + "    two.backward(retain_graph=True)\n    (one - two).backward()\n    opt.step()\n",
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_terms_that_count_twice(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_passes(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
