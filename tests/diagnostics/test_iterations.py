"""Compares the iteration, call or run of a line with what random programs note down themselves."""

from __future__ import annotations

import ast
import re
from collections import Counter
from itertools import islice

import pytest
import torch
from support.daily import first_daily
from support.random_loops import OPS, LoopProgram
from support.recording import traced
from support.silent import Run, run  # noqa: F401

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import as_written, in_iteration, ordinal
from tensorlens.records.model import Call, Trace


def texts(trace: Trace, op: str) -> list[str]:
    """Returns the text of each call of an op, in order."""
    facts = TraceIndex(trace)
    return [in_iteration(facts, call) for call in facts.calls if call.op == op]


def is_true(text: str, iteration: int | None, call: int, run_of_line: int) -> bool:
    number = ordinal(call if " call of " in text else run_of_line if text.startswith(" in its ") else iteration or 0)
    return re.fullmatch(rf" in (the|its) {number} (iteration|run|call of `\w+`)", text) is not None


@pytest.mark.parametrize("seed", first_daily(range(100), 6))
def test_every_number_is_the_one_that_the_program_counted(run: Run, seed: int) -> None:  # noqa: F811
    ran, trace = run(LoopProgram(seed).text)
    runs = Counter[int]()
    calls = iter([call for call in trace.events if isinstance(call, Call) and call.op in OPS])
    facts = TraceIndex(trace)
    for line, iteration, (call_number, caller), events in ast.literal_eval(ran.stdout):
        runs[line] += 1
        for call in islice(calls, events):
            text = in_iteration(facts, call)
            assert trace.sites[call.site].span.line == line
            assert not text or is_true(text, iteration, call_number, runs[line]), (line, text, iteration)
            called_at = caller_lines(trace).line(call)
            assert called_at is None or caller in (0, called_at.line), (line, called_at)  # 0: at the top level
    assert next(calls, None) is None


LAYER = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
    def forward(self, x):
        return torch.tanh(self.fc(x))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
LOOP = """
for step in range(3):
    x = torch.ones(2)
    loss = net(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ITERATIONS = [f" in the {number} iteration" for number in ("1st", "2nd", "3rd")]
CALLS = [f" in the {number} call of `Net.forward`" for number in ("1st", "2nd", "3rd")]
RUNS = [f" in its {number} run" for number in ("1st", "2nd", "3rd")]


@pytest.mark.parametrize(
    ("text", "op", "expected"),
    [
        (LAYER + LOOP, "nn.functional.linear", ITERATIONS),
        (LAYER + LOOP, "torch.tanh", ITERATIONS),
        (LAYER + LOOP, "SGD.step", [each for each in ITERATIONS for _ in range(2)]),
        (LAYER + LOOP.replace("range(3)", "range(1)"), "torch.tanh", [""]),
        (LAYER + LOOP.replace("net(x).sum()", "net(net(x)).sum()").replace("3", "1"), "torch.tanh", CALLS[:2]),
        (
            LAYER + "def f():\n    h = net.fc(x)\n    return net(h)\nx = torch.ones(2)\nf(); f()",
            "torch.tanh",
            CALLS[:2],
        ),
        (LAYER + "net(torch.ones(2)); net(torch.ones(2)); net(torch.ones(2))", "torch.tanh", CALLS),
        ("import torch\nx = torch.ones(2)\nz = [x.exp() for _ in range(3)]", "Tensor.exp", RUNS),
        ("import torch\ndef f(n):\n    for _ in range(n): torch.ones(2)\nf(1); f(2)", "torch.ones", RUNS),
    ],
)
def test_a_line_belongs_to_an_iteration_a_call_or_a_run(run: Run, text: str, op: str, expected: list[str]) -> None:  # noqa: F811
    ran, trace = run(text)
    assert ran.returncode == 0, ran.stderr
    assert texts(trace, op) == expected


def test_a_recording_that_begins_inside_a_loop_knows_no_number() -> None:
    def twice() -> None:
        for _ in range(2):
            torch.ones(2)

    assert texts(traced(twice), "torch.ones") == ["", ""]


def test_a_function_that_a_thread_runs_too_has_no_number(run: Run) -> None:  # noqa: F811
    _, trace = run(
        """
        import threading, torch
        def f():
            return torch.ones(2)
        f()
        thread = threading.Thread(target=f)
        thread.start()
        thread.join()
        f()
        """
    )
    assert not any(texts(trace, "torch.ones"))


def test_a_loop_is_counted_where_a_long_run_has_folded_its_first_calls(run: Run) -> None:  # noqa: F811
    _, trace = run(
        """
        import torch
        x = torch.ones(1)
        for step in range(70000):
            y = x.exp()
        """
    )
    facts = TraceIndex(trace)
    *_, first, last = (call for call in facts.calls if call.op == "Tensor.exp")
    assert facts.trace.event(1) is None
    assert in_iteration(facts, last) in ("", " in the 70000th iteration")
    assert in_iteration(facts, first) in ("", " in the 69999th iteration")


@pytest.mark.parametrize(
    ("line", "op", "expected"),
    [
        ("x -= 1", "Tensor.sub_", "`x -= ...`"),
        ("x[0] -= 1", "Tensor.sub_", "`x[0] -= ...`"),
        ("x[0] = 1", "Tensor.__setitem__", "`x[0] = ...`"),
        ("x.data = y", "Tensor.data.__set__", "`x.data = ...`"),
        ("x.zero_()", "Tensor.zero_", "`x.zero_()`"),
        ("z = x @ y", "Tensor.matmul", "`x @ y`"),
        ("z = torch.add(  # sum\n    x, y)", "torch.add", "`torch.add(x, y)`"),
        ("z = torch.add(x + x + x + x, y + y + y + y + y, alpha=2)", "torch.add", "`torch.add(...)`"),
        (
            "z = (x + x + x + x + x + x + y + y + y + y + y).abs()",
            "Tensor.abs",
            "`(x + x + x + x + x + x + ...).abs(...)`",
        ),
    ],
)
def test_a_change_is_quoted_as_the_script_writes_it(run: Run, line: str, op: str, expected: str) -> None:  # noqa: F811
    ran, trace = run(f"import torch\nx, y = torch.ones(2), torch.ones(2)\n{line}\n")
    assert ran.returncode == 0, ran.stderr
    facts = TraceIndex(trace)
    (call,) = (call for call in facts.calls if call.op == op)
    assert as_written(facts, call) == expected
