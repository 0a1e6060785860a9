"""Tests the query for a changed saved tensor, and the index of states over time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.warm import Warm

from tensorlens.analysis.saved_tensors import SavedTensorChange, is_saved_on_line, saved_tensor_change
from tensorlens.analysis.states import StateHistory, last_states, states_after
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Trace

Run = Callable[[str], Trace]


@pytest.fixture
def run(warm: Warm, tmp_path: Path) -> Run:
    def run(text: str) -> Trace:
        script = tmp_path / "script.py"
        script.write_text("import torch\n" + text, encoding="utf-8")
        return warm.traced(script)[1]

    return run


def change_in(trace: Trace) -> tuple[TraceIndex, SavedTensorChange]:
    facts = TraceIndex(trace)
    change = saved_tensor_change(facts, trace.failures[-1])
    assert change is not None
    return facts, change


def line(facts: TraceIndex, site: int | None) -> str:
    span = facts.span(site)
    assert span is not None
    return facts.trace.sources[span.file].splitlines()[span.line - 1]


def test_a_change_through_an_alias_is_followed_from_the_save_to_the_need(run: Run) -> None:
    trace = run(
        "w = torch.ones(2, requires_grad=True)\ngate = torch.sigmoid(w)\nshown = gate.detach()\n"
        "shown.mul_(100)\nshown.add_(1)\ngate.sum().backward()\n"
    )
    facts, change = change_in(trace)
    assert change.save.call is not None
    assert change.save.tensor is not None
    assert change.alias is not None
    assert line(facts, change.save.call.site) == "gate = torch.sigmoid(w)"
    assert facts.name(change.save.tensor) == "gate"
    changes = [(line(facts, each.event.site), each.write.before, each.write.after) for each in change.changes]
    assert changes == [("shown.mul_(100)", 0, 1), ("shown.add_(1)", 1, 2)]
    assert line(facts, change.alias.call.site) == "shown = gate.detach()"
    assert (facts.name(change.alias.tensor), facts.name(change.alias.source)) == ("shown", "gate")
    assert line(facts, change.needed_at) == "gate.sum().backward()"
    assert is_saved_on_line(facts, change.save, change.save.call.site)
    assert not is_saved_on_line(facts, change.save, change.alias.call.site)


def test_a_change_of_the_tensor_itself_has_no_alias(run: Run) -> None:
    _, change = change_in(run("w = torch.ones(2, requires_grad=True)\ny = w.exp()\ny.add_(1)\ny.sum().backward()\n"))
    assert change.alias is None
    assert len(change.changes) == 1
    assert change.others == ()


def test_the_save_of_a_custom_function_is_its_save_for_backward(run: Run) -> None:
    trace = run(
        "class Square(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        return grad * 2 * ctx.saved_tensors[0]\n"
        "w = torch.ones(2, requires_grad=True)\nx = w * 1\ny = Square.apply(x)\nx.zero_()\ny.sum().backward()\n"
    )
    facts, change = change_in(trace)
    assert change.save.call is not None
    assert line(facts, change.save.call.site).strip() == "ctx.save_for_backward(x)"


def test_the_other_tensors_that_fail_the_check_are_saves_of_their_own(run: Run) -> None:
    trace = run(
        "w = torch.ones(2, requires_grad=True)\na = w.exp()\nb = a.exp()\na.mul_(2)\nb.mul_(2)\nb.sum().backward()\n"
    )
    facts, change = change_in(trace)
    names = [facts.name(save.tensor) for save in (change.save, *change.others) if save.tensor is not None]
    assert sorted(names) == ["a", "b"]


def test_another_failure_changed_no_saved_tensor(run: Run) -> None:
    trace = run("w = torch.ones(2, requires_grad=True)\nw.exp().backward()\n")
    assert saved_tensor_change(TraceIndex(trace), trace.failures[-1]) is None


def test_a_state_is_asked_for_at_an_event_or_strictly_before_it(run: Run) -> None:
    trace = run("x = torch.ones(2)\nx.requires_grad_()\ny = x * 2\n")
    history = StateHistory(trace)
    made, switched = (event for event in trace.events[:2] if isinstance(event, Call))
    x = made.outputs[0].tensor
    assert history.state_before(x, made.index) is None
    first, after = history.state(x, made.index), history.state(x, switched.index)
    before = history.state_before(x, switched.index)
    assert first is not None
    assert after is not None
    assert (first.requires_grad, after.requires_grad) == (False, True)
    assert before == first
    assert history.state(x, -1) == first  # the first recorded one, for an event before it


def test_aliases_have_the_version_of_their_counter(run: Run) -> None:
    trace = run("x = torch.ones(3)\nview = x[:2]\nx.add_(1)\n")
    versions = {state.tensor: state.version for state in states_after(trace)}
    assert set(versions.values()) == {1}
    before = {state.version for state in states_after(trace, 2)}
    assert before == {0}


def test_the_last_states_are_those_of_the_end_if_the_run_reached_it(run: Run) -> None:
    trace = run("x = torch.ones(3, requires_grad=True)\nx.sum().backward()\n")
    assert last_states(trace) == list(trace.end.states)
    assert next(states_after(trace)).grad is not None
