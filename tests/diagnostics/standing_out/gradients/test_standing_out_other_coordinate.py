"""Checks the sentence about derivatives that are taken by another coordinate than their name says."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
def diff(out, at):
    return torch.autograd.grad(out, at, torch.ones_like(out), create_graph=True)[0]
by = lambda at, out: torch.autograd.grad(out.sum(), at, create_graph=True)[0]
def residual(xt):
    x, t = xt[:, :1].detach().requires_grad_(), xt[:, 1:].detach().requires_grad_()
    u = net(torch.cat([x, t], 1))
    {0}
for _ in range(3):
    loss = residual(torch.rand(16, 2)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WHOLE = SCRIPT.replace(
    "x, t = xt[:, :1].detach().requires_grad_(), xt[:, 1:].detach().requires_grad_()", "xt = xt.requires_grad_()"
).replace("torch.cat([x, t], 1)", "xt")
WRONG = {
    "another name": SCRIPT.format(
        "u_t, u_x = diff(u, t), diff(u, x)\n    u_xx = diff(u_x, t)  #!\n    return u_t - u_xx"
    ),
    "another function": SCRIPT.format(
        "u_t, u_x = diff(u, t), diff(u, x)\n    u_xx = diff(u_t, x)  #!\n    return u_t - u_xx + u_x"
    ),
    "arguments the other way round": SCRIPT.format(
        "du_dt, du_dx = by(t, u), by(x, u)\n    d2u_dx2 = by(t, du_dx)  #!\n    return du_dt - d2u_dx2"
    ),
    "a column": WHOLE.format(
        "du = diff(u, xt)\n    u_x, u_t = du[:, 0:1], du[:, 1:2]\n    u_xx = diff(u_x, xt)[:, 1:2]  #!\n"
        "    return u_t - u_xx"
    ),
    "columns of two calls": WHOLE.format(
        "u_x, u_t = diff(u, xt).split(1, dim=1)\n    second = diff(u_x, xt)  #!\n    u_xx = second[:, 1:]\n"
        "    return u_t - u_xx"
    ),
    "exchanged columns": WHOLE.format(
        "x, t = xt[:, 0:1], xt[:, 1:2]\n    du = diff(u, xt)  #!\n    u_t = du[:, 0:1]\n    return u_t - x * t"
    ),
}
RIGHT = {
    "names": SCRIPT.format("u_t, u_x = diff(u, t), diff(u, x)\n    u_xx = diff(u_x, x)\n    return u_t - u_xx"),
    "a mixed one": SCRIPT.format("u_t, u_x = diff(u, t), diff(u, x)\n    u_tx = diff(u_x, t)\n    return u_t - u_tx"),
    "columns": WHOLE.format(
        "du = diff(u, xt)\n    u_x, u_t = du[:, 0:1], du[:, 1:2]\n    u_xx = diff(u_x, xt)[:, 0:1]\n"
        "    return u_t - u_xx"
    ),
    "time first": WHOLE.format(
        "u_t, u_x = diff(u, xt).unbind(1)\n    d = diff(u_x[:, None], xt)\n    u_xx = d[:, 1]\n    return u_t - u_xx"
    ),
    "columns of another tensor": WHOLE.format(
        "x, t = xt[:, :1], xt[:, 1:]\n    u_x, u_t = diff(u, xt).split(1, 1)\n    first = u_t - u_x + 0 * (x + t)\n"
        "    xt = torch.rand(16, 2, requires_grad=True)\n    t, x = xt[:, :1], xt[:, 1:]\n    u = net(xt.flip(1))\n"
        "    u_t, u_x = diff(u, xt).split(1, 1)\n    return first + u_t - u_x"
    ),
    "a field": SCRIPT.format(
        "du_dt, du_dx = diff(u, t), diff(u, x)\n    u_x = diff(u, t)\n    u_t = diff(u, x)\n"
        "    return u_x - u_t + du_dt - du_dx"
    ),
    "another meaning": SCRIPT.format("u_n = diff(u, x)\n    s_t = diff(u, x)\n    return u - u_n * s_t"),
}
WORDS = "derivative of"


@pytest.mark.parametrize("name", WRONG)
def test_derivatives_by_another_coordinate_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_derivatives_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
