"""Graphs and modules that are deeper than what is read of them, or than Python's stack."""

from __future__ import annotations

import sys

import pytest
import torch
from support.recording import traced

from tensorlens.records.model import Call, Gap
from tensorlens.records.source import text_of
from tensorlens.tracer.isolation.module_tree import Limit, module_tensors
from tensorlens.tracer.saved_tensors import graph


def failing() -> None:
    y = torch.ones(3, requires_grad=True).exp()
    z = y
    for _ in range(30):
        z = z * 1.5
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize(("most", "gaps"), [(20, 1), (1_000, 0)])
def test_a_failed_graph_that_is_not_read_to_its_end_is_a_gap(
    monkeypatch: pytest.MonkeyPatch, most: int, gaps: int
) -> None:
    monkeypatch.setattr(graph, "MAX_NODES", most)
    trace = traced(failing)
    found = [event.reason for event in trace.events if isinstance(event, Gap)]
    assert len(found) == gaps
    assert all("the failed graph has more than" in reason for reason in found)


def test_a_module_deeper_than_the_stack_is_read() -> None:
    module: torch.nn.Module = torch.nn.Linear(1, 1)
    for _ in range(3_000):
        outer = torch.nn.Module()
        outer._modules["0"] = module
        module = outer
    assert [path for path, _ in module_tensors("m", module, Limit())] == [
        "m" + "[0]" * 3_000 + ".weight",
        "m" + "[0]" * 3_000 + ".bias",
    ]
    while module._modules:  # freed from outside: freeing the outermost first would recurse
        module = module._modules.pop("0")  # type: ignore[assignment]


def test_a_module_in_itself_is_read_once() -> None:
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.ones(1))
    module._modules["again"] = module
    assert [path for path, _ in module_tensors("m", module, Limit())] == ["m.weight"]


def test_a_call_below_many_frames_without_a_site_is_recorded() -> None:
    """The sites of all frames around a call are found at its first line: a recursion would need their number again."""

    def program(depth: int = sys.getrecursionlimit() // 2) -> None:
        if depth:
            program(depth - 1)
        else:
            torch.ones(2).mul(2)

    trace = traced(program)
    assert [event.op for event in trace.events if isinstance(event, Call)] == ["torch.ones", "Tensor.mul"]
    (called,) = (site for site in trace.sites if "mul" in text_of(trace.sources[site.span.file], site.span))
    outer = trace.sites[called.caller or 0]
    assert text_of(trace.sources[outer.span.file], outer.span) == "program(depth - 1)"
