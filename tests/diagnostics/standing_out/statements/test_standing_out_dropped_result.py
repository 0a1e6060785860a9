"""Checks the sentence about statements that compute a tensor and drop it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, index = torch.randn(8, 4), torch.randint(0, 3, (8,))
for _ in range(3):
    total = torch.zeros(3)
    opt.zero_grad()
    out = net(x)
    STATEMENT
    out.square().mean().backward()
    for p in net.parameters():
        LAST
    opt.step()
"""


def body(statement: str = "pass", last: str = "pass") -> str:
    return BODY.replace("STATEMENT", statement).replace("LAST", last)


WRONG = {
    "noise": (
        body(last="p.grad.add(torch.randn_like(p))  #!"),
        "makes a new tensor that nothing uses, 6 times: `add_()` changes the tensor itself",
    ),
    "clamping": (body(last="p.grad.clamp(-1, 1)  #!"), "`clamp_()` changes the tensor itself"),
    "sums": (body("total.index_add(0, index, out[:, 0])  #!"), "`index_add_()` changes the tensor itself"),
    "detach": (body("out.detach()  #!"), "makes a new tensor that nothing uses, 3 times"),
    "a function": (body(last="torch.clamp(p.grad, -1, 1)  #!"), "`clamp_()` changes the tensor itself"),
    "dropout": (body("nn.functional.dropout(out, 0.5)  #!"), "makes a new tensor that nothing uses, 3 times"),
    "a sum of losses": (body("out + 0.1 * net.weight.norm()  #!"), "makes a new tensor that nothing uses, 3 times"),
    "weights that are not written back": (
        body(last="pass")
        + "    with torch.no_grad():\n        unit = nn.functional.normalize(net.weight, dim=1)  #!\n",
        "is assigned to `unit`, which no line reads, 3 times: `net.weight` stays as it is",
    ),
    "to another dtype": (body("x.double()  #!"), "makes a new tensor that nothing uses, 3 times"),
}
RIGHT = {
    "in place": body(last="p.grad.add_(torch.randn_like(p))"),
    "a function that works in place": body("nn.functional.relu(out.detach(), inplace=True)"),
    "assigned": body("out = out.clamp(-1, 1)"),
    "passed on": body("print(out.abs().max())"),
    "the same tensor": body("x.float()"),
    "a library draws numbers": body("torch.rand(3)"),
    "weights that are read later": body(last="pass")
    + "    with torch.no_grad():\n        unit = nn.functional.normalize(net.weight, dim=1)\nprint(unit.shape)\n",
    "passes for new statistics": body().replace("Linear(4, 1)", "Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))")
    + "with torch.no_grad():\n    for _ in range(3):\n        again = net(torch.randn(4, 4))\n",
    "products that are timed": body().replace("Linear(4, 1)", "Linear(4, 4)")
    + "with torch.no_grad():\n    for _ in range(3):\n        result = torch.randn(4, 4) @ net.weight\n",
    "values that a cell of a notebook shows": "a = torch.arange(12.0).reshape(3, 4)\nb = a.clone()\na * b\n"
    "torch.exp(a)\na.abs()\nnn.functional.softmax(a, dim=1)\n" + body() + "net.weight.abs()\n",
    "functions that are timed": "h = torch.randn(50, 6)\nfor _ in range(5):\n    torch.where(h > 0, h, h.exp())\n"
    + body("bench(x)").replace("net =", "def bench(x):\n    for _ in range(3):\n        torch.exp(x)\nnet ="),
    "below another expression": body("[out.abs() for _ in range(2)]"),
}
WORDS = ("nothing uses", "no line reads")


@pytest.mark.parametrize("name", WRONG)
def test_results_that_are_dropped_are_named(tmp_path: Path, name: str) -> None:
    text, words = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, text) if any(word in each.text for word in WORDS))
    assert words in found.text
    assert found.labels[0].span.line == marked(text)


@pytest.mark.parametrize("name", RIGHT)
def test_other_statements_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if any(word in each.text for word in WORDS)] == []
