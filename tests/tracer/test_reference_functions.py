"""`explain --reference` measures the backward of custom Functions: a wrong one is reported with the right numbers, a
deliberate estimate is not, and the program runs as without the lens."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import run_command
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate
from tensorlens.records.report import Diagnostic
from tensorlens.records.trace_file import dumps, loads

PROGRAM = """import torch

class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {backward}

x = torch.tensor([0.3, -1.2, 2.0, 0.7], requires_grad=True)
Custom.apply(x).sum().backward()
print("printed", x.grad.tolist())
"""

WRONG = {
    "a factor is missing": ("x * x", "g * x", "2 * x"),
    "a sign": ("x.cos()", "g * x.sin()", "-x.sin()"),
    "another formula": ("x.exp().log1p()", "g * torch.sigmoid(-x)", "torch.sigmoid(x)"),
    "in single precision": ("x.float().sin()", "1.5 * g * x.cos()", "x.cos()"),
    "where x is negative": ("torch.where(x > 0, x, 0.1 * x)", "g", "torch.where(x > 0, 1.0, 0.1)"),
    "changed in place": ("x.mul(3).sub_(1)", "g", "torch.full_like(x, 3)"),
}
MEANT = {
    "right": ("x * x", "2 * g * x"),
    "right with a corner": ("x.clamp(min=0.3)", "g * (x > 0.3)"),
    "straight through a rounding": ("x.round()", "g"),
    "straight through a clamp": ("x.clamp(-1, 1)", "g"),
    "a surrogate of a step": ("(x > 0).to(x)", "g / (1 + x.abs()) ** 2"),
    "reversed": ("x.view_as(x)", "-0.5 * g"),
    "clipped": ("x.clone()", "g.clamp(-0.1, 0.1)"),
    "guided": ("x.relu()", "g * (x > 0) * (g > 0)"),
    "stopped": ("x * 2", "torch.zeros_like(g)"),
    "noise": ("x * torch.rand_like(x)", "g"),
    "another at each call": ("x * (setattr(Custom, 'n', getattr(Custom, 'n', 0) + 1) or Custom.n)", "g"),
}


def found(warm: Warm, folder: Path, forward: str, backward: str) -> list[Diagnostic]:
    script = folder / "program.py"
    script.write_text(PROGRAM.format(forward=forward, backward=backward))
    ran, trace = warm.compared(script)
    assert ran == warm.plain(script)
    assert validate(trace) == []
    assert loads(dumps(trace)).inspection == trace.inspection
    return [diagnostic for diagnostic in diagnose(trace) if diagnostic.severity == "warning"]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_formula_is_told_with_the_derivative(name: str, warm: Warm, tmp_path: Path) -> None:
    import torch

    forward, backward, derivative = WRONG[name]
    (warning,) = found(warm, tmp_path, forward, backward)
    assert warning.code == "custom-function-wrong-backward"
    assert [(label.role, label.span.line) for label in warning.labels] == [("returned_here", 12), ("needed_here", 15)]
    x = torch.tensor([0.3, -1.2, 2.0, 0.7], dtype=torch.float64)
    names = {"x": x, "g": torch.ones_like(x), "torch": torch}
    right, got = eval(derivative, names), eval(backward, names)
    wrong = (right - got).abs() > 0.1 * right.abs()
    close = 1e-2 if name == "in single precision" else 1e-4
    assert warning.evidence["forward"] == pytest.approx(right[wrong].tolist(), rel=close)
    assert warning.evidence["backward"] == pytest.approx(got[wrong].tolist(), rel=1e-4)


@pytest.mark.parametrize("name", MEANT)
def test_what_is_right_or_meant_is_left_alone(name: str, warm: Warm, tmp_path: Path) -> None:
    assert found(warm, tmp_path, *MEANT[name]) == []


@pytest.mark.parametrize(("root", "codes"), [("sum", []), ("mean", ["custom-function-wrong-backward"])])
def test_a_backward_that_ignores_its_gradient_is_wrong_for_all_but_ones(
    root: str, codes: list[str], warm: Warm, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    program = PROGRAM.format(forward="x * x", backward="2 * x")
    script.write_text(program.replace(".sum().backward()", f".{root}().backward()"))
    found = diagnose(warm.compared(script)[1])
    assert [warning.code for warning in found] == codes
    for warning in found:
        assert warning.evidence["backward"] == pytest.approx([0.6, -2.4, 4.0, 1.4])
        assert warning.evidence["forward"] == pytest.approx([0.15, -0.6, 1.0, 0.35], rel=1e-4)


@pytest.mark.parametrize(("factor", "count"), [(1, 0), (2, 1)])
def test_a_symmetric_matrix_is_moved_as_one(factor: int, count: int, warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    forward = "(lambda e, v: (v * e.sqrt()) @ v.mT)(*torch.linalg.eigh(x))"
    inner = "(lambda e, v: v @ ((v.mT @ g @ v) / (e.sqrt()[:, None] + e.sqrt())) @ v.mT)(*torch.linalg.eigh(x))"
    program = PROGRAM.format(forward=forward, backward=f"{factor} * {inner}")
    matrix = "x = torch.tensor([[2.0, 0.5], [0.5, 1.0]], requires_grad=True)\n"
    script.write_text(program.replace(program[program.index("x = torch") : program.index("Custom.apply")], matrix))
    assert len(diagnose(warm.compared(script)[1])) == count


def test_of_several_inputs_the_wrong_one_is_named(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\nclass Scale(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(x, weight, power):\n        return weight * x ** power\n"
        "    @staticmethod\n    def setup_context(ctx, inputs, output):\n"
        "        ctx.save_for_backward(*inputs[:2])\n        ctx.power = inputs[2]\n"
        "    @staticmethod\n    def backward(ctx, g):\n        x, weight = ctx.saved_tensors\n"
        "        return ctx.power * g * weight * x ** (ctx.power - 1), g * x, None\n"
        "x, w = torch.full((2,), 3.0, requires_grad=True), torch.full((2,), 0.5, requires_grad=True)\n"
        "Scale.apply(x, w, 2).sum().backward()\n"
    )
    (warning,) = diagnose(warm.compared(script)[1])
    assert warning.title == "`Scale.backward` gives `weight` [3, 3] where its `forward` changes by [9, 9]"


SOLVED = """import torch

class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        ga = gb = None
        gb = torch.linalg.solve(a.T, g)
        ga = -gb @ x.T
        return ga, gb

a = torch.tensor([[3.0, 1.0], [-0.5, 2.0]], requires_grad=True)
Solve.apply(a, torch.tensor([[1.0], [2.0]])).sum().backward()
"""
MADE = {
    "a source of the others, that the program does not need": (("(a.T, g)", "(a, g)"), 14),
    "only what the program needs": (("-gb", "gb"), 15),
    "of an expression": (("return ga", "return 2 * ga"), None),
    "set in two places": (("-gb @ x.T", "-gb @ x.T\n        ga = 2 * ga"), None),
    "changed in place": (("-gb @ x.T", "-gb @ x.T\n        ga.mul_(2)"), None),
}


@pytest.mark.parametrize("name", MADE)
def test_the_only_line_that_makes_a_wrong_gradient_is_labelled(name: str, warm: Warm, tmp_path: Path) -> None:
    change, line = MADE[name]
    script = tmp_path / "program.py"
    script.write_text(SOLVED.replace(*change))
    (warning,) = diagnose(warm.compared(script)[1])
    assert [label.span.line for label in warning.labels if label.role == "value_made_here"] == [line] * bool(line)


def test_without_a_second_run_nothing_is_measured(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(forward="print('forward') or x * x", backward="g * x"))
    assert diagnose(warm.traced(script)[1]) == ()


def test_what_the_program_prints_is_printed_once(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(forward="print('forward') or x * x", backward="g * x"))
    ended = run_command("explain", "--reference", "--width", "100", script)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("forward\nprinted ")
    assert ended.stdout.count("forward\n") == 1
    assert "warning[custom-function-wrong-backward]" in ended.stdout
    told = " ".join(ended.stdout.split())
    assert "`Custom.backward` itself was measured to be wrong" in told
