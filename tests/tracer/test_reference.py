"""`explain --reference`: wrong gradients are proven with the right numbers, and two different runs prove nothing."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import torch
from support.commands import run_command
from support.folders import CORRECT, DOCS
from support.pages import fence, marked
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.reference import Pass, Reference, Sample, compare
from tensorlens.records.report import Diagnostic
from tensorlens.records.trace_file import dumps, loads
from tensorlens.render.report.headline import reference as told

SCHEMA = DOCS / "report.schema.json"

OTHER_PASSES = {"modes_of_every_kind"}  # the passes inside a reentrant checkpoint: the run with copies has none

Compare = Callable[[str], Trace]


@pytest.fixture
def compared(warm: Warm, tmp_path: Path) -> Compare:
    """The trace of a program's run, compared with a run that keeps copies; it must run as it does plainly."""

    def run(text: str) -> Trace:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(text).lstrip("\n"))
        ran, trace = warm.compared(script)
        assert ran.returncode == 0, ran.stderr
        assert validate(trace) == []
        return trace

    return run


def found_in(trace: Trace) -> Reference:
    assert trace.reference is not None
    return trace.reference


def warnings(trace: Trace) -> list[Diagnostic]:
    return [diagnostic for diagnostic in diagnose(trace) if diagnostic.severity == "warning"]


@pytest.mark.parametrize("program", CORRECT, ids=lambda program: program.stem)
def test_every_gradient_of_a_correct_program_agrees(program: Path, warm: Warm) -> None:
    _, trace = warm.compared(program)
    reference = found_in(trace)
    assert reference.differences == ()
    assert not reference.reason or program.stem in OTHER_PASSES
    assert reference.compared
    assert warnings(trace) == []


# --- the right gradient is the numerical derivative -----------------------------------------------------------------

HEAD = """
    import torch
    x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    h = x * 2
    """
WRITES = {
    "data": "h.data.mul_(3)",
    "numpy": "h.detach().numpy()[:] = 7",
    "storage": "h.untyped_storage().fill_(0)",
    "set_": "torch.empty(0, dtype=h.dtype).set_(h.detach()).zero_()",
    "dlpack": "torch.from_dlpack(h.detach()).fill_(9)",
    "ctypes": "import ctypes; ctypes.memset(h.data_ptr(), 0, 16)",
}
FUNCTIONS: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "square": ("(h * h).sum()", lambda x: (4 * x * x).sum()),
    "exp of sin": ("h.sin().exp().sum() + h.prod()", lambda x: (2 * x).sin().exp().sum() + (2 * x).prod()),
    "matmul": ("(h.outer(h) @ h).sum()", lambda x: ((2 * x).outer(2 * x) @ (2 * x)).sum()),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_right_gradient_is_the_numerical_derivative(function: str, write: str, compared: Compare) -> None:
    loss, true = FUNCTIONS[function]
    trace = compared(f"{textwrap.dedent(HEAD)}loss = {loss}\n{WRITES[write]}\nloss.backward()\n")
    (difference,) = found_in(trace).differences
    x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(true, x)
    (right,) = torch.autograd.grad(true(x), x)
    assert difference.right == pytest.approx(right.tolist())
    assert difference.largest == pytest.approx(max(abs(a - b) for a, b in zip(difference.got, right, strict=True)))
    assert difference.relative == pytest.approx(difference.largest / right.abs().max().item())
    (warning,) = warnings(trace)
    said = " ".join((warning.title, *warning.notes))
    assert "with copies" in said


def test_without_the_second_run_the_finding_is_unproven(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"{textwrap.dedent(HEAD)}loss = (h * h).sum()\nh.data.zero_()\nloss.backward()\n")
    (warning,) = warnings(warm.traced(script)[1])
    assert "unproven: run with `--reference`" in " ".join(warning.notes)


KEPT = {
    "the program's own hooks": (
        """
        import torch
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        h = w * 1
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (0, t), lambda kept: kept[1]):
            loss = (h * h).sum()
        h.zero_()
        loss.backward()
        """,
        (4.0, 6.0),
    ),
    "an attribute of ctx": (
        """
        import torch
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, value):
                ctx.value = value
                return value * value
            @staticmethod
            def backward(ctx, gradient):
                return 2 * ctx.value * gradient
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        h = w * 1
        loss = Square.apply(h).sum()
        h.zero_()
        loss.backward()
        """,
        (4.0, 6.0),
    ),
    "a checkpoint that reads a global": (
        """
        import torch
        from torch.utils.checkpoint import checkpoint
        factor = 2.0
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        loss = checkpoint(lambda value: (value * factor).square(), w, use_reentrant=False).sum()
        factor = 0.0
        loss.backward()
        """,
        (8.0, 16.0),
    ),
    "a parameter updated too early": (
        """
        import torch
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        loss = (w * w * w).sum()
        w.data.sub_(1)
        loss.backward()
        """,
        (12.0, 27.0),
    ),
    "a thread of its own": (
        """
        import threading, torch
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        def train():
            h = w * 1
            loss = (h * h).sum()
            h.data.zero_()
            loss.backward()
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        """,
        (4.0, 6.0),
    ),
    "a second derivative": (
        """
        import torch
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        h = w * 1
        (first,) = torch.autograd.grad((h ** 3).sum(), w, create_graph=True)
        h.data.zero_()
        first.sum().backward()
        """,
        (12.0, 18.0),
    ),
    "a gradient that is asked for": (
        """
        import torch
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        h = w * 1
        loss = (h * h).sum()
        h.data.zero_()
        torch.autograd.grad(loss, w)
        """,
        (4.0, 6.0),
    ),
}


@pytest.mark.parametrize("way", KEPT)
def test_what_is_kept_for_backward_is_copied(way: str, compared: Compare) -> None:
    text, right = KEPT[way]
    (difference,) = found_in(compared(text)).differences
    assert difference.right == pytest.approx(right)
    assert difference.got != pytest.approx(right)


def test_a_hook_that_changes_the_gradient_of_others_is_told(compared: Compare) -> None:
    (warning,) = warnings(
        compared(
            """
            import torch
            x, z = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
            def scale(gradient):
                gradient.mul_(10)
            x.register_hook(scale)
            (x + z).backward(torch.ones(3))
            """
        )
    )
    assert warning.code == "hook-mutates-shared-gradient"
    assert {(label.role, label.span.line) for label in warning.labels} == {
        ("modified_here", 4),
        ("hook_registered_here", 5),
        ("needed_here", 6),
    }
    assert "the gradient of `z` is [10, 10, 10], and [1, 1, 1] in a second run with copies" in warning.notes[0]


def test_a_hook_that_changes_its_own_gradient_is_left_alone(compared: Compare) -> None:
    trace = compared(
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
        for parameter in net.parameters():
            parameter.register_hook(lambda gradient: gradient.clamp_(-0.1, 0.1))
        hidden = net[0](torch.ones(2, 3))
        hidden.register_hook(lambda gradient: gradient.mul_(0.5))
        net[1](hidden).sum().backward()
        """
    )
    assert (found_in(trace).differences, warnings(trace)) == ((), [])


# --- two different runs prove nothing -------------------------------------------------------------------------------

UNSEEDED = {
    "a seed from the system": "torch.seed()",
    "a generator of NumPy's": "import numpy; x.data += torch.tensor(numpy.random.default_rng().random(3))",
    "a clock": "import time; x.data += time.perf_counter() % 1",
}


@pytest.mark.parametrize("way", UNSEEDED)
def test_an_unseeded_program_claims_nothing(way: str, compared: Compare) -> None:
    trace = compared(
        f"""
        import torch
        x = torch.ones(3, requires_grad=True)
        {UNSEEDED[way]}
        h = x * torch.rand(3)
        loss = (h * h).sum()
        h.data.zero_()
        loss.backward()
        """
    )
    reference = found_in(trace)
    assert (reference.compared, reference.differences) == ((), ())
    assert "the two runs are different" in reference.reason
    assert "nothing was compared" in told(trace)
    assert all(not note.startswith("compared: ") for warning in warnings(trace) for note in warning.notes)


def test_random_numbers_without_a_seed_are_the_same_in_both_runs(compared: Compare) -> None:
    reference = found_in(
        compared(
            """
            import random, numpy, torch
            x = torch.randn(3, requires_grad=True)
            (x * random.random() * numpy.random.rand()).square().sum().backward()
            """
        )
    )
    assert (len(reference.compared), reference.differences, reference.reason) == (1, (), "")


def test_after_the_first_wrong_gradient_nothing_is_claimed(compared: Compare) -> None:
    trace = compared(
        """
        import torch
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            h = w * 1
            loss = (h * h).sum()
            if step == 1:
                h.data.zero_()
            loss.backward()
            optimizer.step()
        """
    )
    reference = found_in(trace)
    assert len(reference.compared) == 2
    assert {difference.backward for difference in reference.differences} == {reference.compared[-1]}
    assert "later passes are not judged" in told(trace)


def test_a_pass_that_raised_is_not_compared(compared: Compare) -> None:
    reference = found_in(
        compared(
            """
            import torch
            w = torch.tensor([2.0, 3.0], requires_grad=True)
            h = w.exp()
            loss = h.sum()
            h.zero_()
            try:
                loss.backward()
            except RuntimeError:
                pass
            """
        )
    )
    assert (reference.compared, reference.differences) == ((), ())
    assert "raised" in reference.reason


# --- comparing, in numbers ------------------------------------------------------------------------------------------


def passes(gradient: list[float], loss: float = 1.0, shape: tuple[int, ...] | None = None) -> list[Pass]:
    leaf = Sample((len(gradient),), "float32", (0.5,) * len(gradient))
    values = Sample(shape or (len(gradient),), "float32", tuple(gradient))
    return [Pass(3, (Sample((), "float32", (loss,)),), {0: (0, leaf, values)}, False)]


def test_rounding_is_no_difference() -> None:
    assert compare(passes([1.0, 2.0]), passes([1.0, 2.0 + 1e-6])).differences == ()
    assert compare(passes([1.0, 2.0]), passes([1.0, 2.01])).differences != ()
    assert compare(passes([float("nan")]), passes([float("nan")])).differences == ()
    assert compare(passes([float("nan")]), passes([1.0])).differences != ()
    assert compare(passes([float("inf")]), passes([float("-inf")])).differences != ()


def test_the_values_shown_begin_where_they_differ() -> None:
    (difference,) = compare(passes([1.0] * 40), passes([1.0] * 30 + [5.0] + [1.0] * 9)).differences
    assert (difference.start, difference.got[0], difference.right[0]) == (30, 1.0, 5.0)
    assert (difference.largest, difference.relative) == (4.0, 0.8)


def test_of_large_tensors_the_sums_are_compared() -> None:
    one, other = [1.0] * 10 + [100.0, 100.0], [1.0] * 10 + [190.0, 190.0]
    assert compare(passes(one, shape=(100,)), passes(one, shape=(100,))).differences == ()
    assert len(compare(passes(one, shape=(100,)), passes(other, shape=(100,))).differences) == 1


def test_a_large_tensor(compared: Compare) -> None:
    (difference,) = found_in(
        compared(
            """
            import torch
            w = torch.ones(200, 300, requires_grad=True)
            h = w * 1
            loss = (h * h).sum()
            h.data[7, 11] = 50
            loss.backward()
            """
        )
    ).differences
    assert difference.values == 60_000


# --- the page, the forms, the command -------------------------------------------------------------------------------


@pytest.mark.parametrize(("heading", "codes"), [("Fails", ["gradient-differs-from-reference"]), ("Fixed", [])])
def test_page(heading: str, codes: list[str], compared: Compare) -> None:
    example = fence("gradient-differs-from-reference", heading)
    found = warnings(compared(example))
    assert [diagnostic.code for diagnostic in found] == codes
    for diagnostic in found:
        lines: dict[str, set[int]] = {}
        for label in diagnostic.labels:
            lines.setdefault(label.role, set()).add(label.span.line)
        assert lines == marked(example)


def test_it_is_saved_with_the_trace(compared: Compare) -> None:
    trace = compared(fence("gradient-differs-from-reference", "Fails"))
    assert loads(dumps(trace)).reference == trace.reference


def test_command(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, sys, torch\nx = torch.ones(2, requires_grad=True)\nh = x * 1\nloss = (h * h).sum()\n"
        "h.data.zero_()\nloss.backward()\n"
        "print('once', sys.stdin.read(), 'PYTHONHASHSEED' in os.environ)\n"
    )
    ended = run_command("explain", "--format", "json", script, "--reference", text="input")
    assert ended.stderr == "once input False\n"
    report = json.loads(ended.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    (difference,) = report["reference"]["differences"]
    assert (difference["name"], difference["got"], difference["right"]) == ("x", [0.0, 0.0], [2.0, 2.0])
