"""Checks that a second run under `--training` compares the `backward` of custom Functions with their `forward`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on
from tensorlens.records.invariants import validate
from tensorlens.records.report import Report
from tensorlens.render import RenderOptions, render
from tensorlens.runner.second_run import complete

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(8, 3)
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {backward}
for step in range(5):
    loss = (head(Own.apply(net(x))) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CODE = "custom-function-wrong-backward"
WRONG = {
    "without the gradient": ("x * x.sigmoid()", "x.sigmoid() * (1 + x * (1 - x.sigmoid()))"),
    "a missing factor": ("torch.tanh(2 * x)", "g * (1 - torch.tanh(2 * x) ** 2)"),
    "a wrong sign": ("x.sin()", "-g * x.cos()"),
}
TWO = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return (a * x).sin()
    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return g * a * (a * x).cos(), {gradient}
a = nn.Parameter(torch.tensor(1.5))
for step in range(5):
    loss = (head(Own.apply(net(x), a)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
RIGHT = {
    "right": ("torch.tanh(2 * x)", "2 * g * (1 - torch.tanh(2 * x) ** 2)"),
    "straight through": ("(x > 0).float()", "g"),
    "rounded, and clipped": ("(4 * x).round() / 4", "g.clamp(-1, 1)"),
    "a surrogate of a step": ("(x > 0).float()", "g / (1 + 10 * x.abs()) ** 2"),
    "gradient reversal": ("x.view_as(x)", "-g"),
    "a smaller gradient": ("x * 1.0", "0.1 * g"),
    "clipped": ("x.clone()", "g.clamp(-0.01, 0.01)"),
    "clamped, straight through": ("x.clamp(-0.5, 0.5)", "g"),
}


def report_of(warm: Warm, folder: Path, forward: str, backward: str) -> tuple[Report, int]:
    """Returns the report of a program with what the second run found, and the number of runs."""
    script = folder / "program.py"
    script.write_text(HEAD.format(forward=forward, backward=backward))
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    assert first.exited.returncode == 0
    complete(runs, first, None)
    trace = first.trace()
    assert validate(trace) == []
    return report_on(trace), runs.count


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_backward_is_a_finding(warm: Warm, tmp_path: Path, name: str) -> None:
    report, runs = report_of(warm, tmp_path, *WRONG[name])
    (found,) = report.diagnostics
    assert "a second run, to check the custom Functions" in " ".join(render(report, "table", RenderOptions()).split())
    assert runs == 2
    assert found.code == CODE
    assert found.labels[0].span.line == 16


@pytest.mark.parametrize("name", RIGHT)
def test_other_functions_are_left_alone(warm: Warm, tmp_path: Path, name: str) -> None:
    report, runs = report_of(warm, tmp_path, *RIGHT[name])
    assert runs == 2
    assert report.diagnostics == ()


def test_a_program_without_functions_is_not_repeated(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD.format(forward="x", backward="g").replace("Own.apply(net(x))", "net(x)"))
    runs = WarmRuns(warm, script, training=True)
    complete(runs, runs.first(), None)
    assert runs.count == 1


@pytest.mark.parametrize(
    ("gradient", "count"), [("(x * (a * x).cos()).sum()", 1), ("(g * x * (a * x).cos()).sum()", 0)]
)
def test_each_input_is_judged_by_itself(warm: Warm, tmp_path: Path, gradient: str, count: int) -> None:
    """The gradient of one input uses the one that `backward` receives, that of the other one does not."""
    script = tmp_path / "program.py"
    script.write_text(HEAD.partition("class Own")[0] + TWO.format(gradient=gradient))
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    complete(runs, first, None)
    report = report_on(first.trace())
    found = [each for each in report.diagnostics if each.code == CODE]
    assert len(found) == count
    assert all("`Own.backward` gives `a`" in each.title for each in found)


MARKED = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.tanh(x), 1 - torch.tanh(x) ** 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
    @staticmethod
    def backward(ctx, g, _):
        (slope,) = ctx.saved_tensors
        return {factor} * g * slope
for step in range(5):
    loss = (head(Own.apply(net(x))[0]) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("factor", "count"), [(1, 0), (2, 1)])
def test_an_output_without_a_derivative_is_left_out(warm: Warm, tmp_path: Path, factor: int, count: int) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD.partition("class Own")[0] + MARKED.format(factor=factor))
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    complete(runs, first, None)
    assert [each.code for each in report_on(first.trace()).diagnostics] == [CODE] * count


SOLVER = """
class Path(torch.autograd.Function):
    @staticmethod
    def forward(ctx, start, field, steps, *params):
        states = [start]
        for _ in range(steps):
            states.append(states[-1] + 0.2 * field(states[-1]))
        ctx.field, ctx.steps, ctx.count = field, steps, len(params)
        ctx.save_for_backward(torch.stack(states), *params)
        return torch.stack(states)
    @staticmethod
    def backward(ctx, given):
        path, *params = ctx.saved_tensors
        adjoint = given[-1]  # the end
        sums = [torch.zeros_like(each) for each in params]
        for k in reversed(range(ctx.steps)):
            with torch.enable_grad():
                state = path[k].detach().requires_grad_()
                after = state + 0.2 * ctx.field(state)
            adjoint, *parts = torch.autograd.grad(after, (state, *params), adjoint)
            {add}
            for total, part in zip(sums, parts):
                total += part
        return adjoint, None, None, *sums
field = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
optimizer = torch.optim.SGD([*net.parameters(), *field.parameters()], lr=0.1)
start = nn.Linear(3, 3)
for step in range(4):
    path = Path.apply({start}, {field}, 4, *field.parameters())
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ALL = "adjoint = adjoint + given[k]"
PATHS = {
    "only the last state": ("pass", "start(x)", "field", "(path - 1).square().mean()", "start"),
    "of a function": ("pass", "start(x)", "lambda z: field(z)", "(path - 1).square().mean()", "start"),
    "a start without a gradient": ("pass", "x", "field", "(path - 1).square().mean()", "params[0]"),
    "all states": (ALL, "start(x)", "field", "(path - 1).square().mean()", None),
    "a smaller gradient": ("adjoint = 0.9 * adjoint + given[k]", "start(x)", "field", "path.square().mean()", None),
    "a loss of the last state": ("pass", "start(x)", "field", "(path[-1] - 1).square().mean()", None),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_solver_that_ignores_the_gradient_of_states_is_a_finding(warm: Warm, tmp_path: Path, name: str) -> None:
    *parts, argument = PATHS[name]
    script = tmp_path / "program.py"
    filled = SOLVER.format(**dict(zip(("add", "start", "field", "loss"), parts, strict=True)))
    script.write_text(HEAD.partition("class Own")[0] + filled)
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    complete(runs, first, None)
    found = [each for each in report_on(first.trace()).diagnostics if each.code == CODE]
    assert len(found) == (argument is not None)
    for each in found:
        assert f"`Path.backward` gives `{argument}` [0, 0" in each.title
        assert "ignores" in each.detail[0]
        end = next(n for n, line in enumerate(script.read_text().splitlines(), 1) if "# the end" in line)
        assert end in {label.span.line for label in each.labels}
