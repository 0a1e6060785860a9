"""Questions about each of many parameters look at each call a few times, not once for each parameter."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch

import tensorlens
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import changed_since, parameters_without_gradient
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call


def _cut_off(count: int) -> TraceIndex:
    """Trains layers of which only the last one has a gradient: the results of the others are detached."""
    with tensorlens.trace() as run:
        layers = [torch.nn.Linear(1, 1) for _ in range(count)]
        optimizer = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.1)
        for _ in range(2):
            hidden = torch.ones(2, 1)
            for layer in layers:
                hidden = layer(hidden.detach())
            hidden.sum().backward()
            optimizer.step()
    return TraceIndex(run.trace())


def _looks(facts: TraceIndex, question: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Counts how many calls a question looks at, one after the other."""
    looks = 0

    class Counted(list[Call]):
        def __iter__(self) -> Iterator[Call]:
            nonlocal looks
            for call in super().__iter__():
                looks += 1
                yield call

    with monkeypatch.context() as patched:
        patched.setitem(facts.__dict__, "calls", Counted(facts.calls))
        question()
    return looks


def test_twice_the_parameters_take_twice_the_looks_at_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, found = [], []
    for count in (40, 80):
        facts = _cut_off(count)
        looks.append(_looks(facts, partial(parameters_without_gradient, Training(facts)), monkeypatch))
        found.append(parameters_without_gradient(Training(facts)))
    assert [len(each) for each in found] == [2 * 39, 2 * 79]
    assert 0 < looks[1] <= 2.5 * looks[0]


def test_only_changes_after_an_event_count_those_of_data_and_of_a_view_too() -> None:
    with tensorlens.trace() as run:
        parameters = [torch.nn.Parameter(torch.zeros(4)) for _ in range(3)]
        _before = parameters[0].detach().add_(1)
        _assigned = parameters[1].data = torch.ones(4)
        _after = parameters[2].detach()[1:].add_(1)
    facts = TraceIndex(run.trace())
    training = Training(facts)
    first, second, third = (t.id for t in facts.trace.tensors if t.type == "Parameter")
    write = next(call.index for call in facts.calls if call.op == "Tensor.add_")
    assert [changed_since(training, number, write) for number in (first, second, third)] == [False, True, True]
    assert [changed_since(training, number, write - 1) for number in (first, second, third)] == [True, True, True]
    assert not any(changed_since(training, number, facts.calls[-1].index) for number in (first, second, third))
