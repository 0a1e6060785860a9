"""Checks how much memory `--training` says that only graphs hold, and which lines have saved it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import traced_script

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.held_memory import saved_by_line
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.records.model import Trace
from tensorlens.records.source import line_at
from tensorlens.records.training import HeldMemory
from tensorlens.render.report.training_section import memory_text
from tensorlens.tracer.training.saved_memory import MOST_CUT, MOST_READ, ObjectCounts

START = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
net = nn.Linear(8, 16)
top = nn.Linear(16, 16)
opt = torch.optim.SGD([*net.parameters(), *top.parameters()], lr=0.01)
data = torch.randn(1000, 8)
BLOCK = 64_000  # bytes of 1000 x 16 floats

def step(loss, **options):
    opt.zero_grad(); loss.backward(**options); opt.step()
"""
BLOCK = 64_000

SAVED = {
    "a chain": (
        [("relu", BLOCK), ("tanh", BLOCK)],  # the matrix product saves the result of relu again
        """
        for _ in range(4):
            hidden = net(data).relu()  # relu
            hidden = top(hidden)
            hidden = hidden.tanh()  # tanh
            hidden = hidden.sum()
            step(hidden)
        """,
    ),
    "one tensor that three nodes save": (
        [("first", BLOCK)],
        """
        def loss():
            h = net(data).exp()  # first
            return (h * h).sum() + h.sin().sum()
        for _ in range(4):
            step(loss())
        """,
    ),
    "a view of what a graph saves": (
        [("first", BLOCK)],
        """
        def loss():
            h = net(data).exp()  # first
            return h[:10].square().sum() + h.t().square().sum()
        for _ in range(4):
            step(loss())
        """,
    ),
    "a write in place": (
        [("here", 2 * BLOCK + 8)],  # of tanh and of the square; and the 2, as float64
        """
        def loss():
            h = net(data) * 2
            h[:, :4] *= 0.5
            return top(h.clone().mul_(2).tanh()).square().sum()  # here
        for _ in range(4):
            step(loss())
        """,
    ),
    "what Python holds too": (
        [],
        """
        for _ in range(4):
            hidden = net(data).exp()
            step(hidden.sum())
        """,
    ),
    "what a closure holds": (
        [],
        """
        def keeping():
            hidden = net(data).exp()
            return lambda: hidden
        for _ in range(4):
            keeper = keeping()
            step(keeper().sum())
        """,
    ),
    "a view that Python holds": (
        [],
        """
        def loss():
            h = net(data).exp()
            return h[:1], h.sum()
        for _ in range(4):
            view, value = loss()
            step(value)
        """,
    ),
    "gradients that a graph saves": (
        [],
        """
        def penalty():
            return sum((p * p.grad).sum() for p in opt.param_groups[0]["params"] if p.grad is not None)
        for _ in range(4):
            step(net(data).sum() + top.weight.sum() + penalty())
        """,
    ),
    "parameters alone": (
        [],
        """
        for _ in range(4):
            step(net.weight.square().sum() + top.weight.square().sum())
        """,
    ),
    "a checkpoint": (
        [("first", BLOCK)],  # what `checkpoint` is given, and not what it computes
        """
        def loss():
            h = net(data).relu()  # first
            return checkpoint(lambda given: top(given).exp().sin(), h, use_reentrant=False).sum()
        for _ in range(4):
            step(loss())
        """,
    ),
    "gradients off": (
        [],
        """
        for _ in range(4):
            with torch.no_grad():
                target = net(data).exp().sin()
            step(net.weight.sum() + top(target[:1]).sum())
        """,
    ),
    "hooks that pack to a tuple": (
        [],
        """
        def loss():
            with torch.autograd.graph.saved_tensors_hooks(lambda t: (t,), lambda t: t[0]):
                return net(data).exp().sum()
        for _ in range(4):
            step(loss())
        """,
    ),
    "a custom Function": (
        [("apply", BLOCK)],
        """
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, given):
                ctx.save_for_backward(given)
                return given ** 3
            @staticmethod
            def backward(ctx, gradient):
                given, = ctx.saved_tensors
                return 3 * given ** 2 * gradient
        def loss():
            return Cube.apply(net(data)).sum()  # apply
        for _ in range(4):
            step(loss())
        """,
    ),
}

pytestmark = pytest.mark.skipif(not ObjectCounts()._shows_c, reason="this PyTorch does not count what C++ holds")


def looks(trace: Trace, passes: bool) -> list[HeldMemory]:
    return [look for look in trace.inspection.memory if bool(look.begun) is passes]


def large_by_mark(trace: Trace, folder: Path, look: HeldMemory) -> list[tuple[str, int]]:
    """Returns (comment, bytes) of the lines with at least a block."""
    source = (folder / "script.py").read_text()
    facts = TraceIndex(trace)
    spans = [(facts.span(site), size) for site, size in saved_by_line(facts, look) if size >= BLOCK]
    return [(line_at(source, span.line).rpartition("# ")[2], size) for span, size in spans if span is not None]


@pytest.mark.parametrize("kind", SAVED)
def test_what_only_graphs_hold(kind: str, tmp_path: Path) -> None:
    expected, script = SAVED[kind]
    trace = traced_script(tmp_path, START + textwrap.dedent(script))
    before = looks(trace, passes=True)
    assert [look.begun for look in before] == [1, 2, 4]
    for look in before:
        assert look.is_complete
        found = large_by_mark(trace, tmp_path, look)
        assert sorted(found) == sorted(expected)
        assert sum(size for _, size in expected) <= look.saved < sum(size for _, size in expected) + BLOCK
    assert [look.saved for look in looks(trace, passes=False)] == [0, 0, 0]  # backward has freed it


def test_a_retained_graph_is_counted_at_the_step_too(tmp_path: Path) -> None:
    script = "for _ in range(4):\n    loss = net(data).exp().sum()\n    step(loss, retain_graph=True)\n"
    trace = traced_script(tmp_path, START + script)
    assert [look.saved for look in looks(trace, passes=False)] == [BLOCK] * 3
    # the graph of the loss before lives until the name has the new one
    assert [look.saved for look in looks(trace, passes=True)] == [BLOCK] * 3


def test_graphs_in_a_list_add_up(tmp_path: Path) -> None:
    script = "kept = []\nfor _ in range(8):\n    kept.append(net(data).exp().sum())\n    step(net.weight.sum())\n"
    trace = traced_script(tmp_path, START + script)
    assert [look.saved for look in looks(trace, passes=False)] == [BLOCK, 2 * BLOCK, 4 * BLOCK, 8 * BLOCK]
    assert [look.step for look in looks(trace, passes=True)] == [1, 2, 4, 8]


def test_some_passes_of_one_step_are_looked_at(tmp_path: Path) -> None:
    script = """
    for _ in range(3):
        for _ in range(5):
            net(data).exp().sum().backward()
        opt.step()
    """
    trace = traced_script(tmp_path, START + textwrap.dedent(script))
    assert [(look.step, look.begun) for look in looks(trace, passes=True)] == [
        (1, 1), (1, 2), (1, 4), (2, 6), (2, 7), (2, 9)]  # fmt: skip


def test_no_hook_of_the_program_runs(tmp_path: Path) -> None:
    script = """
    runs = []
    def unpack(value):
        runs.append(1)
        return value
    def loss():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            return net(data).exp().sum()
    for _ in range(4):
        value = loss()
        before = len(runs)
        value.backward()
        assert len(runs) - before == 2, len(runs)  # of the product and of exp
        opt.step()
    """
    traced_script(tmp_path, START + textwrap.dedent(script))


def test_a_large_graph_is_read_in_part_and_a_few_times(tmp_path: Path) -> None:
    script = f"""
    for _ in range(8):
        value = net.weight
        for _ in range({MOST_READ + 100}):
            value = value.sin()
        value = value.sum()
        step(value)
    """
    trace = traced_script(tmp_path, START + textwrap.dedent(script))
    before = looks(trace, passes=True)
    assert [look.is_complete for look in trace.inspection.memory] == [False] * 6
    assert len(before) == MOST_CUT - 1  # a step between them finds the same graph, whose nodes are freed
    assert all((MOST_READ - 10) * 8 * 16 * 4 < look.saved < MOST_READ * 8 * 16 * 4 for look in before)
    text = memory_text(measured(trace))
    assert text is not None
    assert text.startswith("memory: at least 2.6")
    assert "and at least 2.56 MB that only graphs hold" in text


def test_the_line_names_what_was_saved(tmp_path: Path) -> None:
    script = "for _ in range(4):\n    step(top(net(data.repeat(10, 1)).exp()).sin().sum())\n"
    text = memory_text(measured(traced_script(tmp_path, START + script)))
    assert text is not None
    assert "when backward pass 1 begins, the most of 6 looks" in text
    # the repeated data, the result of exp, and that of the second layer
    assert text.endswith("1.6 MB that only graphs hold, saved for backward: line 17 1.6 MB")


def measured(trace: Trace) -> MeasuredTraining:
    training = measured_training(TraceIndex(trace))
    assert training is not None
    return training
