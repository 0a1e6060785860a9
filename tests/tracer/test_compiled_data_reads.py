"""The compiled fast path watches the memory behind `.data` as Python does, and asks Python only where a node may have
saved it (`tensorlens/tracer/recording/fast_path_c/unsaved_memory.h`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.recording import compiled
from tensorlens.tracer.recording.recorder import Recorder

FastPath = compiled.FastPath
pytestmark = pytest.mark.skipif(FastPath is None, reason="not built from this source: python hatch_build.py")

Stages = Iterator[object]  # the watched memory is compared wherever a program yields


def averages() -> Stages:
    net, average = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    for _ in range(4):
        loss = net(x).sum()
        yield loss
        loss.backward()
        for follower, parameter in zip(average.parameters(), net.parameters(), strict=True):
            follower.data.mul_(0.9).add_(parameter.data, alpha=0.1)
        yield None
        average(x)
        yield None


def aliases_that_stay() -> Stages:
    x = torch.nn.Parameter(torch.ones(3))
    (x * 1).sum()
    alias = x.data
    yield None
    y = x.exp() * x
    yield None
    alias.mul_(2)
    yield y


def a_leaf_that_a_node_has_saved() -> Stages:
    w = torch.nn.Parameter(torch.ones(3))
    y = w * w
    yield w.data
    yield y
    del y
    yield w.data


def a_result_that_its_node_has_saved() -> Stages:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    yield y.data
    z = x * 2
    yield z.data


def views() -> Stages:
    x = torch.ones(4, requires_grad=True)
    first = (x * 2)[:2]
    for _ in range(3):
        yield first.data
        yield x[:2].data
        yield x.detach().data


def two_lines() -> Stages:
    x = torch.ones(3, requires_grad=True)
    x * 2
    for _ in range(3):
        x.data.add_(1)
        yield None
        x.data.sub_(1)
        yield None


def memory_of_arrays() -> Stages:
    x = torch.ones(3, requires_grad=True)
    x * 2
    array = x.detach().numpy()
    for n in range(4):
        yield x.data
        y = x * x
        array[0] = n
        yield x.data
        yield y


def packed_tensors() -> Stages:
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor], lambda kept: kept[0]):
        y = x * x
    for _ in range(3):
        yield x.data
    yield y


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.kept = x
        return x.detach().square()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad * 2 * ctx.kept


def attributes_of_a_context() -> Stages:
    x = torch.ones(3, requires_grad=True)
    y: Any = Square.apply(x)  # type: ignore[no-untyped-call]
    yield x.data
    x.data.add_(1)
    yield None
    y.sum().backward()
    del y
    yield x.data
    (x * 2).sum().backward()
    yield x.data


def many() -> Stages:
    for _ in range(3):
        tensors = [torch.ones(2, requires_grad=True) for _ in range(100)]
        for tensor in tensors:
            tensor * 2
            tensor.data.add_(1)
        yield None


PROGRAMS: list[Callable[[], Stages]] = [
    averages, aliases_that_stay, a_leaf_that_a_node_has_saved, a_result_that_its_node_has_saved, views, two_lines,
    memory_of_arrays, packed_tensors, attributes_of_a_context, many,
]  # fmt: skip


def described(recorder: Recorder) -> dict[int, tuple[object, ...]]:
    """Describes the watched memory without its addresses."""
    return {
        number: (type(known), known.op, known.site, known.tensor, known.may_be_saved, getattr(known, "contents", None))
        for number, known in recorder.watched.items()
    }


def watched(program: Callable[[], Stages], fast_path: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], int]:
    """Returns the watched memory at each stage of a program, and how many reads of `.data` Python was asked about."""
    monkeypatch.setattr(compiled, "FastPath", fast_path)
    recorder, asked = new_recorder((__file__,)), 0
    watch_alias = recorder.saved_tensors.watch_alias

    def counted(*args: Any) -> None:
        nonlocal asked
        asked += 1
        watch_alias(*args)

    recorder.saved_tensors.watch_alias = counted  # type: ignore[method-assign, assignment]
    with recorder:
        stages = [described(recorder) for _ in program()]
    recorder.close()
    return stages, asked


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_memory_is_watched(program: Callable[[], Stages], monkeypatch: pytest.MonkeyPatch) -> None:
    in_c, _ = watched(program, FastPath, monkeypatch)
    in_python, asked = watched(program, None, monkeypatch)
    assert in_c == in_python
    assert asked
    assert any(in_python)


@pytest.mark.parametrize(
    ("program", "is_asked"),
    [(averages, False), (two_lines, False), (a_leaf_that_a_node_has_saved, True), (packed_tensors, True)],
)
def test_python_is_asked_where_a_node_may_have_saved_the_memory(
    program: Callable[[], Stages], is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, asked = watched(program, FastPath, monkeypatch)
    assert (asked > 1) is is_asked  # the first call of every function is for Python


def test_storages_of_dead_tensors_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, _ = watched(many, FastPath, monkeypatch)
    assert all(len(stage) < 250 for stage in stages)
