"""The nodes of a graph are named without a Python wrapper for each (`tensorlens/tracer/recording/graph_nodes.py`)."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from support.daily import one_in
from support.recording import traced
from torch.testing._internal.common_methods_invocations import op_db

from tensorlens.records.model import Call, State, Trace
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.recording import compiled, graph_nodes

STACK = 128 * 1024  # bytes: freeing a chain of 4,000 wrapped nodes overflows it
CHAINS = {
    "a chain of results": "y = y + y * 1e-6",
    "a chain of writes": "y += y * 1e-6",
    "a running total": "y += (x * 2).mean()",
    "writes to a view": "y[:1] += x * 2",
    "a function with two results": "y, _ = torch.max(torch.stack((y, y * 2)), dim=0)",
    "a list of results": "y = torch.cat(torch._foreach_add([y, y], 1.0))[:1]",
    "a module's call": "y = layer(y)",
    "a function that returns its argument": "y = (y * 2).contiguous()",
    "with watched memory": "y = y * 2; array[0] += 1",
}


def script_of(chains: dict[str, str], steps: int) -> str:
    """A program that builds and frees each chain in a thread with a small stack."""
    functions = [
        f"def chain_{number}():\n"
        "    x, layer = torch.randn(1, requires_grad=True), torch.nn.Identity()\n"
        "    array, y = torch.zeros(1).numpy(), x.clone()\n"
        f"    for _ in range({steps}):\n"
        f"        {step}\n"
        f"    print({name!r}, flush=True)\n"
        for number, (name, step) in enumerate(chains.items())
    ]
    threads = (
        f"for number in range({len(chains)}):\n    thread = threading.Thread(target=globals()[f'chain_{{number}}'])\n"
    )
    start = f"import threading, torch\nthreading.stack_size({STACK})\n"
    return start + "".join(functions) + threads + "    thread.start(); thread.join()\nprint('all are freed')\n"


def test_deep_graphs_are_freed_as_without_the_lens(tmp_path: Path) -> None:
    script = tmp_path / "chains.py"
    script.write_text(script_of(CHAINS, steps=4_000))
    command = [sys.executable, "-m", "tensorlens", "explain", "-o", str(tmp_path / "report.json"), str(script)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == [*CHAINS, "all are freed"], run.stderr
    assert run.returncode == 0


def wrapped_nodes() -> int:
    gc.collect()
    return sum(type(found).__name__.endswith("Backward0") for found in gc.get_objects())


def wrapped_by(steps: int) -> int:
    """Counts the nodes with a Python wrapper after some steps of a training-like program."""
    kept: list[torch.Tensor] = []
    before, recorder = wrapped_nodes(), new_recorder((__file__,))
    with recorder:
        x = torch.ones(4, requires_grad=True)
        for _ in range(steps):
            y = (x * 2).sin() + x
            y += torch.cat([y, y])[:4]
            y[0] = 1
            a, b = y.split(2)
            kept.extend((y, a, b, torch.nn.functional.relu(y).sum()))
    recorder.close()
    return wrapped_nodes() - before


@pytest.mark.parametrize("fast_path", [None, compiled.FastPath], ids=["in Python", "compiled"])
def test_wrappers_do_not_grow_with_the_run(fast_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FastPath", fast_path)
    assert 0 < wrapped_by(steps=3) == wrapped_by(steps=60)


def test_a_run_that_may_read_no_more_names_no_wrong_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_nodes, "MAX_READS", 2)

    def program() -> None:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        z = y + 1
        z.sin_()
        y.exp_()
        z.t().mul_(2)

    known = {(state.grad_fn, state.node is None) for state in states_by_call(traced(program), "program")}
    assert known == {("MulBackward0", False), ("AddBackward0", False), (None, True)}


# --- the nodes that are named are the ones that PyTorch made ---------------------------------------------------------


def states_by_call(trace: Trace, function: str) -> list[State]:
    """The states of what calls inside a function returned or changed, in order."""
    sites = {site.id for site in trace.sites if site.function.endswith(function)}
    return [s for call in trace.events if isinstance(call, Call) and call.site in sites for s in call.states]


def check_nodes(calls: list[Callable[[], Any]]) -> None:
    """Run `calls` from one line, and compare what was recorded of each result with its own `grad_fn`."""
    truth: list[tuple[str, int] | None] = []

    def run() -> None:
        for call in calls:
            try:
                result = call()
            except (RuntimeError, TypeError, NotImplementedError, ValueError):
                continue
            with torch._C.DisableTorchFunction():
                for tensor in (result,) if isinstance(result, torch.Tensor) else result:
                    if isinstance(tensor, torch.Tensor) and tensor.requires_grad and not tensor.is_leaf:
                        truth.append((tensor.grad_fn.name(), tensor.grad_fn._sequence_nr()))  # type: ignore[union-attr]

    trace = traced(run)
    made = {
        (state.grad_fn, state.node)
        for event in trace.events if isinstance(event, Call)
        for state in event.states if state.node is not None
    }  # fmt: skip
    assert truth
    missing = [node for node in truth if node not in made]
    assert not missing


def x_and(function: Callable[[torch.Tensor], Any]) -> list[Callable[[], Any]]:
    x = torch.arange(1.0, 25).reshape(4, 6).requires_grad_()
    return [lambda: function(x * 2)] * 3


PROGRAMS: dict[str, list[Callable[[], Any]]] = {
    "indices of several kinds at one line": [
        lambda key=key: torch.ones(3, 4, requires_grad=True).mul(2)[key]  # type: ignore[misc]
        for key in (0, slice(1, 2), slice(0, 3), None, ..., (0, 1), (slice(None), 0), [0, 1], True, (0, slice(1, 2)))
    ],
    "whole and partial slices": [
        lambda rows=rows: torch.ones(rows, 2, requires_grad=True).mul(2)[:4]  # type: ignore[misc]
        for rows in (4, 5, 4, 6)
    ],
    "a mode given as text": [
        lambda mode=mode: torch.nn.functional.interpolate(  # type: ignore[misc]
            torch.ones(1, 1, 4, 4, requires_grad=True) * 2, scale_factor=2, mode=mode
        )
        for mode in ("nearest", "bilinear", "bicubic", "nearest", "bilinear")
    ],
    "lists of results": [*x_and(lambda x: x.unbind()), *x_and(lambda x: x.split(1, dim=1))],
    "many results of one call": x_and(lambda x: torch._foreach_mul([x] * 12, 2.0)),
    "many results of many nodes": x_and(lambda x: [torch.tensor_split(x, 3), x.tensor_split(2)][0]),
    "results with several tensors": [*x_and(lambda x: torch.max(x, dim=0)), *x_and(torch.linalg.svd)],
    "a view that was written": x_and(lambda x: x.t()[0].mul_(3)),
    "a slice that was written": x_and(lambda x: x[1:].add_(1)),
    "writes": x_and(lambda x: x.add_(1).mul_(2).relu_()),
    "writes under no_grad": x_and(lambda x: torch.no_grad()(x.mul_)(2)),
    "what is returned as it was": x_and(lambda x: x.contiguous().to(torch.float32)),
}


@pytest.mark.parametrize("calls", PROGRAMS.values(), ids=PROGRAMS)
def test_nodes_are_named_as_grad_fn_names_them(calls: list[Callable[[], Any]]) -> None:
    check_nodes(calls)


def test_a_write_without_a_record_leaves_the_node() -> None:
    def program() -> None:
        x = torch.ones(3, requires_grad=True)
        for _ in range(8):  # the window forgets some of these calls, and not what they say of the node
            y = x * 2
            y.sin_()
            for _ in range(6):
                with torch.no_grad():
                    y.mul_(2)

    states = [s for s in states_by_call(traced(program), "program") if s.grad_fn is not None]
    assert {state.grad_fn for state in states} == {"MulBackward0", "SinBackward0"}
    latest: dict[int, State] = {}
    for state in states:
        if state.grad_fn == "SinBackward0" and state.tensor in latest and latest[state.tensor].grad_fn == state.grad_fn:
            assert state.node == latest[state.tensor].node
        latest[state.tensor] = state
    assert all(state.grad_fn == "SinBackward0" for state in latest.values())


def samples(op: Any) -> list[Callable[[], Any]]:
    """Calls of an operation with some of PyTorch's own sample inputs, each two times."""
    taken = islice(op.sample_inputs("cpu", torch.float64, requires_grad=True), 6)
    return [
        call
        for sample in taken
        if isinstance(sample.input, torch.Tensor)
        for call in [lambda s=sample: op.op(s.input, *s.args, **s.kwargs)] * 2
    ]


DIFFERENTIABLE = [
    op for op in op_db if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu") and op.op is not None
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", one_in(20, DIFFERENTIABLE), ids=lambda op: f"{op.name}-{op.variant_test_name}")
def test_nodes_of_operations_are_named_as_grad_fn_names_them(op: Any) -> None:
    calls = samples(op)
    if any(call() is not None and requires_grad(call()) for call in calls[:1]):
        check_nodes(calls)


def requires_grad(result: Any) -> bool:
    found = (result,) if isinstance(result, torch.Tensor) else result
    return any(isinstance(t, torch.Tensor) and t.requires_grad and not t.is_leaf for t in found)
