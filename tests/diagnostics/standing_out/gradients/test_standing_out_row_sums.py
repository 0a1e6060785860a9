"""Checks the sentence about second derivatives of all columns of a gradient at once, which hold mixed derivatives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.standing_out import HEAD, marked
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.analysis.training.gradients.hessian_rows import columns_to_measure
from tensorlens.diagnostics import report_on
from tensorlens.records.invariants import validate
from tensorlens.records.report import Report
from tensorlens.records.trace_file import dumps, loads
from tensorlens.runner.second_run import complete

SCRIPT = """\
from torch.autograd import grad
net = nn.Sequential(nn.Linear({size}, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
def diff(out, at):
    return grad(out, at, torch.ones_like(out), create_graph=True)[0]  #?
def penalty_of(x):
    u = {field}
    {body}
for _ in range(3):
    x = {points}
    loss = penalty_of(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def script(
    body: str, field: str = "net(x)", points: str = "torch.rand(16, 2, requires_grad=True)", size: int = 2
) -> str:
    return SCRIPT.format(body=body.replace("\n", "\n    "), field=field, points=points, size=size)


FIRST = "g = grad(u.sum(), x, create_graph=True)[0]\n"
SUM = f"{FIRST}h = grad(g.sum(), x, create_graph=True)[0]  #!\n"
WRONG = {
    "a Laplacian": script(f"{SUM}return (h.sum(dim=1) + 1).square().mean()"),
    "columns": script(f"{SUM}return (h[:, :1] + h[:, 1:] - u).square().mean()"),
    "unpacked": script(f"{SUM}u_xx, u_yy = h.unbind(1)\nreturn (u_xx + u_yy).square().mean()"),
    "heat": script(f"{SUM}return (g[:, 1] - h[:, 0]).square().mean()"),
    "a function": script(f"{SUM}return (torch.sum(h, -1, keepdim=True) + 1).square().mean()"),
    "a helper, twice": script("return (diff(diff(u, x), x).sum(1) + 1).square().mean()"),
    "ones": script(
        f"{FIRST}h, = grad(g, x, torch.ones_like(g), create_graph=True)  #!\nreturn (h.sum(1) + 1).square().mean()"
    ),
    "three columns": script(
        f"{SUM}return (h.sum(1) + 1).square().mean()", points="torch.rand(16, 3, requires_grad=True)", size=3
    ),
    "a product": script(
        f"{SUM}return (h.sum(1) + 1).square().mean()", field="net(x[:, :1]) * net(x[:, 1:])", size=1
    ),
    "joined coordinates": script(
        f"{SUM}return (h.sum(1) + 1).square().mean()",
        points="torch.cat([torch.rand(16, 1, requires_grad=True), torch.rand(16, 1)], 1)",
    ),
}  # fmt: skip
RIGHT = {
    "a sum of functions of one column": script(
        f"{SUM}return (h.sum(1) + 1).square().mean()", field="net(x[:, :1]) + net(x[:, 1:])", size=1
    ),
    "elements": script(f"{SUM}return (h[:, 0] + h[:, 1]).square().mean()", field="net(x.unsqueeze(-1))", size=1),
    "one column": script(
        f"{SUM}return (h.sum(1) + 1).square().mean()", points="torch.rand(16, 1, requires_grad=True)", size=1
    ),
    "each column": script(
        f"{FIRST}h = sum(grad(g[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(2))\n"
        "return (h + 1).square().mean()"
    ),
    "each part": script(
        f"{FIRST}a, b = g.unbind(1)\nh = grad(a.sum(), x, create_graph=True)[0][:, 0]\n"
        "h = h + grad(b.sum(), x, create_graph=True)[0][:, 1]\nreturn (h + 1).square().mean()"
    ),
    "a random vector": script(
        f"{FIRST}v = torch.randn_like(g)\nh = grad((g * v).sum(), x, create_graph=True)[0]\n"
        "return (h * v).sum(1).mean() + 0.5 * g.square().sum(1).mean()"
    ),
    "a random vector as weights": script(
        f"{FIRST}v = torch.randint(2, g.shape).float() * 2 - 1\nh = grad(g, x, v, create_graph=True)[0]\n"
        "return ((h * v).sum(1) + 1).square().mean()"
    ),
    "a chosen vector": script(
        f"{FIRST}h = grad((g * torch.ones(2)).sum(), x, create_graph=True)[0]\nreturn (h.sum(1) + 1).square().mean()"
    ),
    "a direction": script(
        f"{FIRST}h = grad(g.sum(1).sum(), x, create_graph=True)[0]\nreturn (h.sum(1) - u[:, 0]).square().mean()"
    ),
    "a wave along the diagonal": script(
        f"{FIRST}h = grad(g.sum(), x, create_graph=True)[0]\nreturn (h.sum(1) - g.sum(1)).square().mean()"
    ),
    "a penalty of squares": script(f"{FIRST}h = grad(g.pow(2).sum(), x, create_graph=True)[0]\nreturn h.sum(1).mean()"),
    "a penalty of norms": script(f"{FIRST}h = grad(g.norm(), x, create_graph=True)[0]\nreturn h.sum(1).abs().mean()"),
    "norms of the sums": script(f"{SUM}return h.norm(dim=1).mean()"),
    "tensors of their own": script(
        "p, q = x.detach().T.clone().requires_grad_(True)\nu = net(torch.stack([p, q], 1))\n"
        "a, b = grad(u.sum(), (p, q), create_graph=True)\n"
        "h = grad(a.sum(), p, create_graph=True)[0] + grad(b.sum(), q, create_graph=True)[0]\n"
        "return (h + 1).square().mean()"
    ),
    "a parallel shift, by its name": script(
        f"{FIRST}h = grad(g.sum(), x, create_graph=True)[0]\nby_shift = h.sum(1)\nreturn (by_shift - 1).square().mean()"
    ),
    "a parallel shift, by a comment": script(
        f"{FIRST}h = grad(g.sum(), x, create_graph=True)[0]\n# for a parallel shift of both\nbend = h.sum(1)\n"
        "return (bend - 1).square().mean()"
    ),
    "a mixed derivative by a difference": script(
        f"{FIRST}u_xx = grad(g[:, 0].sum(), x, create_graph=True)[0][:, 0]\n"
        "both = grad(g.sum(), x, create_graph=True)[0]\nu_xy = both[:, 0] - u_xx\n"
        "return (u_xx * (both[:, 1] - u_xy) - u_xy**2 - 1).square().mean()"
    ),
    "not in the loss": script(f"{SUM}print(h.sum(1).mean())\nreturn (g[:, 0] - 1).square().mean()"),
}  # fmt: skip
WORDS = "sums of rows of the Hessian"


def report_of(warm: Warm, folder: Path, body: str) -> Report:
    """Returns the report of a script with what a second run has measured."""
    path = folder / "script.py"
    path.write_text(HEAD + body)
    runs = WarmRuns(warm, path, training=True)
    first = runs.first()
    assert first.exited.returncode == 0, body
    complete(runs, first, columns_to_measure)
    return report_on(first.trace())


@pytest.mark.parametrize("name", WRONG)
def test_sums_of_rows_are_named(warm: Warm, tmp_path: Path, name: str) -> None:
    body = WRONG[name].replace("  #?", "" if "#!" in WRONG[name] else "  #!")
    found = report_of(warm, tmp_path, body).standing_out
    (said,) = (each for each in found or () if WORDS in each.text)
    assert said.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_second_derivatives_are_left_alone(warm: Warm, tmp_path: Path, name: str) -> None:
    found = report_of(warm, tmp_path, RIGHT[name]).standing_out
    assert [each.text for each in found or () if WORDS in each.text] == []


def test_the_norms_are_those_of_the_hessian(warm: Warm, tmp_path: Path) -> None:
    """The facts are kept in a trace file, and no reason is given for terms that nothing has asked for."""
    body = script(f"{SUM}return (h.sum(dim=1) + 1).square().mean()", field="(x[:, 0] ** 2 * x[:, 1] ** 3) + 0 * net(x)")
    report = report_of(warm, tmp_path, body.replace("(x[:, 0]", "(x[:, :1]").replace("x[:, 1] **", "x[:, 1:] **"))
    inspection = report.trace.inspection
    torch.manual_seed(0)
    torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x, y = torch.rand(16, 2).unbind(1)
    first = inspection.column_derivatives[0]
    assert first.own == pytest.approx(((2 * y**3).norm().item(), (6 * x**2 * y).norm().item()), rel=1e-4)
    assert first.mixed == pytest.approx([(6 * x * y**2).norm().item()] * 2, rel=1e-4)
    assert inspection.terms_unknown == ()
    assert validate(report.trace) == []
    assert repr(loads(dumps(report.trace)).inspection) == repr(inspection)
