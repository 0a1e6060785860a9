"""Checks the sentence about derivatives of the sum of several outputs that a loss uses one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, {0}))
opt = torch.optim.Adam(net.parameters())
def diff(out, at):
    return torch.autograd.grad(out, at, torch.ones_like(out), create_graph=True)[0]  #?
for _ in range(3):
    x = torch.rand(16, 2, requires_grad=True)
    out = net(x)
    {1}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a helper": SCRIPT.format(
        2, "u, v, d = out[:, :1], out[:, 1:], diff(out, x); loss = (u * d[:, :1] - v).square().mean()"
    ),
    "a sum": SCRIPT.format(
        2,
        "(u, v), (d,) = out.unbind(1), torch.autograd.grad(out.sum(), x, create_graph=True)  #!\n"
        "    loss = (v * d[:, 0] - u).square().mean()",
    ),
    "chunks": SCRIPT.format(
        3,
        "u, v, p = out.split(1, dim=1)\n    du, dv = diff(out, x).chunk(2, 1)\n"
        "    loss = (u * du + v * dv - p).square().mean()",
    ),
}
RIGHT = {
    "one column": SCRIPT.format(2, "u, v = out[:, :1], out[:, 1:]; loss = (v - diff(u, x)[:, :1]).square().mean()"),
    "a penalty": SCRIPT.format(2, "loss = out[:, 0].mean() + (diff(out, x).norm(dim=1) - 1).square().mean()"),
    "all columns": SCRIPT.format(2, "d = diff(out, x); loss = out.square().mean() + d[:, 0].square().mean()"),
    "weights": SCRIPT.format(
        2,
        "d, = torch.autograd.grad(out, x, torch.eye(2)[:1].expand(16, 2), create_graph=True)\n"
        "    loss = (out[:, 1] - d[:, 0]).square().mean()",
    ),
    "a part of an energy": SCRIPT.format(
        2,
        "d, = torch.autograd.grad(out.sum(), x, create_graph=True)\n"
        "    loss = (out[:, 0] - x[:, 0]).square().mean() + (d[:, 0] - 2 * x[:, 0]).square().mean()",
    ),
    "a sum, and a column": SCRIPT.format(
        2,
        "u, v, d = out[:, :1], out[:, 1:], diff(out, x)\n"
        "    loss = (d[:, :1] + v).square().mean() + (diff(u, x)[:, :1] + u * v).square().mean()",
    ),
    "a sum, and the sum of a column": SCRIPT.format(
        2,
        "u, v, d = out[:, :1], out[:, 1:], diff(out, x)\n"
        "    e, = torch.autograd.grad(u.sum(), x, create_graph=True)\n"
        "    loss = (d[:, :1] + v).square().mean() + (e[:, :1] + u * v).square().mean()",
    ),
    "a total that one column loses": SCRIPT.format(
        2,
        "lost, = torch.autograd.grad(out.sum(), x, create_graph=True); a, b = out[:, :1], out[:, 1:]\n"
        "    loss = (lost[:, :1] + 0.5 * a).square().mean() + b.relu().mean()",
    ),
    "a balance of both": SCRIPT.format(
        2, "d = diff(out, x); loss = (d[:, :1] + 0.5 * out[:, :1] + 0.2 * out[:, 1:]).square().mean()"
    ),
    "one output": SCRIPT.format(1, "loss = (out[:, 0] - diff(out, x)[:, 0]).square().mean()"),
}
WORDS = "not those of one column"


@pytest.mark.parametrize("name", WRONG)
def test_derivatives_of_all_columns_are_named(tmp_path: Path, name: str) -> None:
    script = WRONG[name] if "#!" in WRONG[name] else WRONG[name].replace("#?", "#!")
    (found,) = (each for each in sentences(tmp_path, script) if WORDS in each.text)
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize("name", RIGHT)
def test_other_derivatives_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
