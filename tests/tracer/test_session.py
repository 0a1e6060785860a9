"""The public `tensorlens.trace()`: what it leaves behind is torch as it was."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import random
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch

import tensorlens
from tensorlens.journal.reader import Reader
from tensorlens.records.invariants import validate
from tensorlens.records.model import Call
from tensorlens.render import render
from tensorlens.tracer.recording.tensor_ids import CENSUS

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


def test_a_report_inside_the_block_is_about_what_ran_so_far() -> None:
    w = torch.ones(2, requires_grad=True)
    with tensorlens.trace() as lens:
        y = w.exp()
        y.detach().mul_(2)
        before = lens.report()
        with contextlib.suppress(RuntimeError):
            y.sum().backward()
        after = lens.report()
        w.sin()
    assert before.diagnostics == ()
    assert before.trace.script.outcome == "recording"
    assert "y" in {binding.name for binding in before.trace.end.bindings}
    assert "the recording goes on" in render(before)
    assert "ran to its end" not in render(before)
    assert [diagnostic.code for diagnostic in after.diagnostics] == ["saved-tensor-modified-inplace"]
    assert validate(after.trace) == []
    assert [len(each.trace.events) for each in (before, after)] == [3, 5]
    assert len(lens.trace().events) == 6
    assert "the recorded code ran to its end;" in render(lens.report())


def test_an_optimizer_without_a_step_is_no_mistake_while_the_recording_goes_on() -> None:
    layer = torch.nn.Linear(1, 1)
    with tensorlens.trace() as lens:
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(3):
            layer.zero_grad()
            layer(torch.ones(1)).sum().backward()
        so_far = lens.report()
    assert optimizer is not None
    assert so_far.diagnostics == ()
    assert [diagnostic.code for diagnostic in lens.report().diagnostics] == ["optimizer-step-not-called"]


def test_a_long_block_keeps_no_more_than_its_last_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    class Counting(Reader):
        def read(self, batches_of_rows: Iterable[list[Any]]) -> None:
            read = [list(batch) for batch in batches_of_rows]
            batches.extend(sum(len(row) if type(row) is bytes else 8 for row in batch) for batch in read)
            super().read(read)

    monkeypatch.setattr("tensorlens.session.Reader", Counting)
    x = torch.ones(2)
    with tensorlens.trace() as lens:
        first = x.exp()
        for _ in range(3 * CENSUS):
            y = first * 2
    trace = lens.trace()
    assert y.shape == x.shape
    assert max(batches) < 1.1 * sum(batches) / 3  # what a third of the block wrote
    assert len(trace.events) < CENSUS
    assert validate(trace) == []
    assert sorted(total.count for total in trace.totals) == [1, 3 * CENSUS]
    assert [event.op for event in trace.events[:1]] == ["Tensor.exp"]  # type: ignore[union-attr]


def test_asking_too_early_is_a_clear_error() -> None:
    session = tensorlens.trace()
    with pytest.raises(RuntimeError, match="nothing to report yet: run code in `with`"):
        session.trace()
    with session, pytest.raises(RuntimeError, match="already active"):
        session.__enter__()


def ops(session: Any) -> list[str]:
    return [event.op for event in session.trace().events if isinstance(event, Call)]


def test_blocks_may_be_left_in_any_order() -> None:
    before = everything()
    first, second = tensorlens.trace(), tensorlens.trace()
    first.__enter__()
    torch.ones(1)
    second.__enter__()
    torch.zeros(1)
    first.__exit__(None, None, None)
    torch.eye(1)
    second.__exit__(None, None, None)
    torch.empty(1)
    assert ops(first) == ["torch.ones", "torch.zeros"]
    assert ops(second) == ["torch.zeros", "torch.eye"]
    assert everything() == before


def test_threads_may_record_at_the_same_time() -> None:
    before = everything()
    sessions = [tensorlens.trace() for _ in range(4)]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                with sessions[number]:
                    x = torch.ones(number + 1, requires_grad=True)
                    time.sleep(random.random() / 50)
                    (x * 2).sum().backward()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert everything() == before
    for number, session in enumerate(sessions):
        assert {"torch.ones", "Tensor.mul", "Tensor.sum"} <= set(ops(session))
        assert (number + 1,) in [tensor.shape for tensor in session.trace().tensors]


def test_a_thread_that_outlives_the_block_goes_on() -> None:
    go, told = threading.Event(), []

    def work() -> None:
        go.wait()
        told.append((torch.ones(2) * 2).sum().item())

    with tensorlens.trace() as lens:
        thread = threading.Thread(target=work)
        thread.start()
    go.set()
    thread.join()
    assert told == [4.0]
    assert ops(lens) == []


def test_generators_and_coroutines_are_recorded_while_they_run() -> None:
    before = everything()
    session, other = tensorlens.trace(), tensorlens.trace()

    @session
    def generator() -> Iterator[float]:
        for _ in range(2):
            sent = yield torch.ones(1).item()
            assert sent is None

    @other
    async def coroutine(number: int) -> float:
        await asyncio.sleep(0.01 * number)
        return torch.zeros(1).item() + number

    async def both() -> list[float]:
        return [*await asyncio.gather(coroutine(2), coroutine(1))]

    assert list(generator()) == [1.0, 1.0]
    assert ops(session).count("torch.ones") == 2
    assert asyncio.run(both()) == [2.0, 1.0]
    assert "torch.zeros" in ops(other)
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isgeneratorfunction(generator)
    unfinished = generator()
    next(unfinished)
    unfinished.close()
    assert everything() == before


def test_tasks_that_overlap_leave_torch_as_it_was() -> None:
    before = everything()

    async def task(number: int) -> int:
        with tensorlens.trace() as lens:
            torch.ones(1)
            await asyncio.sleep(0.01 * number)
            torch.zeros(1)
        return len(lens.trace().events)

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(task(number) for number in (1, 3, 2)))

    assert min(asyncio.run(all_of_them())) >= 2
    assert everything() == before


def test_a_decorated_function_may_call_itself() -> None:
    session = tensorlens.trace()

    @session
    def factorial(count: int) -> float:
        return torch.tensor(float(count)).item() * (factorial(count - 1) if count > 1 else 1)

    assert factorial(4) == 24
    assert ops(session).count("torch.tensor") == 4


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), ExceptionGroup("g", [OSError()])]
)
def test_whatever_is_raised_goes_on_its_way(error: BaseException) -> None:
    before = everything()
    session = tensorlens.trace()

    @session
    def fails() -> None:
        torch.ones(1)
        raise error

    with pytest.raises(type(error)) as raised:
        fails()
    assert raised.value is error
    assert session.trace().script.outcome == "error"
    assert everything() == before
