"""The public `tensorlens.trace()`: what it leaves behind is torch as it was."""

from __future__ import annotations

import os
import threading
import traceback
import warnings
from collections.abc import Iterable
from typing import Any

import pytest
import torch

import tensorlens
from tensorlens.reader import Reader
from tensorlens.soundness import check
from tensorlens.tracer.identity import CENSUS

TOUCHED = (
    torch,
    torch.Tensor,
    torch.autograd,
    torch.autograd.Function,
    torch.autograd.function.FunctionCtx,
    torch.inference_mode,
    torch.nn.Parameter,
    torch.optim.Optimizer,
    torch.utils,
    threading.Thread,
    os,
    warnings,
    warnings.catch_warnings,
    traceback,
)


def everything() -> list[Any]:
    state: list[Any] = [{name: id(value) for name, value in vars(owner).items()} for owner in TOUCHED]
    return [*state, list(warnings.filters), torch._C._len_torch_function_stack()]


def test_torch_is_as_it_was_after_nested_and_failing_blocks() -> None:
    before = everything()
    with pytest.raises(ZeroDivisionError), tensorlens.trace(), tensorlens.trace():
        int(torch.ones(1)) // 0
    assert everything() == before


def test_nested_blocks_each_see_their_own_part() -> None:
    with tensorlens.trace() as outer:
        torch.ones(1)
        with tensorlens.trace() as inner:
            torch.zeros(1)
    assert [event.op for event in inner.trace().events] == ["torch.zeros"]  # type: ignore[union-attr]
    assert [event.op for event in outer.trace().events] == ["torch.ones", "torch.zeros"]  # type: ignore[union-attr]


def test_as_a_decorator_each_call_is_recorded_anew() -> None:
    session = tensorlens.trace()

    @session
    def double(count: int) -> int:
        for _ in range(count):
            torch.ones(1)
        return count * 2

    assert double(3) == 6
    assert len(session.trace().events) == 3
    double(1)
    assert len(session.trace().events) == 1
    assert double.__name__ == "double"


def test_an_exception_goes_on_and_is_explained() -> None:
    session = tensorlens.trace()
    y = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="modified by an inplace"), session:
        y.exp().add_(1).sum().backward()
    report = session.report()
    assert report.trace.script.outcome == "error"
    assert [diagnostic.code for diagnostic in report.diagnostics] == ["saved-tensor-modified-inplace"]


def test_a_long_block_keeps_no_more_than_its_last_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    class Counting(Reader):
        def read(self, batches_of_rows: Iterable[list[Any]]) -> None:
            read = [list(batch) for batch in batches_of_rows]
            batches.extend(map(len, read))
            super().read(read)

    monkeypatch.setattr("tensorlens.tracer.session.Reader", Counting)
    x = torch.ones(2)
    with tensorlens.trace() as lens:
        first = x.exp()
        for _ in range(3 * CENSUS):
            y = first * 2
    trace = lens.trace()
    assert y.shape == x.shape
    assert max(batches) < 1.1 * sum(batches) / 3  # what a third of the block wrote
    assert len(trace.events) < CENSUS
    assert check(trace) == []
    assert sorted(total.count for total in trace.totals) == [1, 3 * CENSUS]
    assert [event.op for event in trace.events[:1]] == ["Tensor.exp"]  # type: ignore[union-attr]


def test_asking_too_early_is_a_clear_error() -> None:
    session = tensorlens.trace()
    with pytest.raises(RuntimeError, match="leave the `with"):
        session.trace()
    with session, pytest.raises(RuntimeError, match="already active"):
        session.__enter__()
