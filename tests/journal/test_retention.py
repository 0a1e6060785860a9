"""A long run gives a short report: lines with counts, and the last of the tensors that are gone."""

from __future__ import annotations

import json
import time
from array import array
from collections.abc import Iterator

import pytest
import torch

import tensorlens
from tensorlens import session
from tensorlens.journal import retention
from tensorlens.journal.call_runs import CallRun
from tensorlens.journal.changed_tensors import MOST_RELATED, ChangedTensors
from tensorlens.journal.retention import Retention
from tensorlens.journal.rows import LEFT_OUT, NONE, CallRow, State, of_alias
from tensorlens.render import render
from tensorlens.render.report.json import MAX_EVENTS, MAX_TENSORS

TIMES = 5_000


def nothing_left(weight: torch.Tensor) -> None:
    for _ in range(TIMES):
        (weight * 2).detach()


def test_the_report_of_a_long_run_that_leaves_no_tensor_is_short() -> None:
    def run() -> None:
        weight = torch.ones(3, requires_grad=True)
        nothing_left(weight)

    with tensorlens.trace() as lens:
        run()
    assert not lens.trace().end.states
    assert len(lens.trace().events) > MAX_EVENTS
    told = json.loads(render(lens.report(), "json"))
    counts = {event["op"]: event["count"] for event in told["events"]}
    assert counts == {"torch.ones": 1, "Tensor.mul": TIMES, "Tensor.detach": TIMES}
    assert len(told["tensors"]) == MAX_TENSORS
    last = told["events"][-1]["outputs"][0]["tensor"]
    assert told["tensors"][-1]["id"] == last
    assert {n for storage in told["storages"] for n in storage["tensors"]} == {t["id"] for t in told["tensors"]}


def _seconds_of_a_report(count: int) -> float:
    """Measures processor time from the trace of calls on `count` tensors each to its report."""
    with tensorlens.trace() as lens:
        leaves = [torch.ones(4, requires_grad=True) for _ in range(count)]
        scaled = torch._foreach_mul(leaves, leaves)
        added = torch._foreach_add(scaled, leaves)
        rows = torch.stack(added).unbind(0)
        torch._foreach_add_([row.detach() for row in rows], 1.0)
        sum(row.sum() for row in added).backward()  # type: ignore[union-attr]
    lens.trace()
    start = time.process_time()
    render(lens.report(), "table")
    render(lens.report(), "json")
    return time.process_time() - start


def test_the_report_of_calls_on_many_tensors_takes_time_in_proportion() -> None:
    few, many = (min(_seconds_of_a_report(count) for _ in range(2)) for count in (200, 1600))
    assert many < 8 * 3 * few  # with the square of their number it is over 64 times


def test_older_calls_that_lead_to_a_named_tensor_are_kept_before_those_that_lead_to_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "OLDER", 3)
    kept = Retention(2, {})
    for number in range(20):
        inputs = (number - 10, 0) if number >= 10 else ()
        kept.add(number, CallRow("op", 0, inputs, (number, 0), (), (), 0, 0, 0), "")
    assert [index for index, *_ in kept.items({14})] == [4, 8, 14, 18, 19]
    assert kept.left_out == 15


def test_calls_of_the_beginning_stay_in_a_training_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "TRAINING_WINDOW", 2)
    monkeypatch.setattr(retention, "BEGINNING", 3)
    for window, expected in ((2, [0, 1, 2, 8, 9]), (3, [7, 8, 9])):
        kept = Retention(window, {})
        for number in range(10):
            kept.add(number, CallRow("op", 0, (), (number, 0), (), (), 0, 0, 0), "")
            if number % 4 == 3:
                kept.forget_all_but([])
        kept.forget_all_but([])
        assert [index for index, *_ in kept.items(set())] == expected


def test_a_report_says_how_many_calls_that_made_live_tensors_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "OLDER", 5)
    monkeypatch.setattr(session, "WINDOW", 10)
    with tensorlens.trace() as lens:
        weight = torch.ones(3, requires_grad=True)
        live = [weight * 2 for _ in range(100)]
        failing = live[50].exp()
        failing.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            failing.sum().backward()
    trace = lens.trace()
    gap = trace.events[-1]
    assert (getattr(gap, "reason", ""), getattr(gap, "count", 0)) == (LEFT_OUT, 90)
    assert LEFT_OUT in " ".join(render(lens.report(), "table").split())
    assert [each.code for each in lens.report().diagnostics] == ["saved-tensor-modified-inplace"]


class _CountedStates(tuple[State, ...]):
    """States of a call that count how often they are read through."""

    readings = 0

    def __iter__(self) -> Iterator[State]:
        _CountedStates.readings += 1
        return super().__iter__()


def test_a_call_on_many_tensors_is_read_through_a_few_times() -> None:
    tensors, calls = 500, 8
    kept = Retention(1, {})
    _CountedStates.readings = 0
    for index in range(calls):
        states = _CountedStates((n, index, True, False, "AddBackward0", index, False, None) for n in range(tensors))
        flat = tuple(each for n in range(tensors) for each in (n, index))
        kept.add(index, CallRow("torch._foreach_add_", 0, flat, (), (), states, index, index + 1, 0), "")
    assert len(kept.items(set())) == 5  # the first, the last three that changed them, and the window
    assert set(kept.dropped_nodes()) == set(range(tensors))
    assert _CountedStates.readings < 6 * calls


def test_the_storage_of_an_alias_is_kept_as_long_as_the_alias() -> None:
    def made(index: int, *call: int) -> CallRun:
        return CallRun(index, array("q", call).tobytes(), array("I", [len(call)]).tobytes(), "")

    kept = Retention(1, {})
    kept.add_run(made(0, 1, 5, 0, 7, of_alias(5), 0, 0))
    kept.forget_all_but([7])
    assert list(kept.storages()) == [5]  # in the window
    kept.add_run(made(1, 2, 8, 0, 9, NONE, 0, 0))
    kept.forget_all_but([7])
    assert list(kept.storages()) == [5]  # before it
    kept.forget_all_but([9])
    assert list(kept.storages()) == []


def test_the_change_of_a_tensor_that_only_the_graph_holds_is_kept() -> None:
    with tensorlens.trace() as lens:
        leaf = torch.ones(2, requires_grad=True)
        saved = leaf.exp()
        shown = saved.detach()
        shown.zero_()
        total = saved + 1.0
        del saved, shown
        for _ in range(4 * retention.WINDOW):
            total = total + 1.0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.sum().backward()
    found = {label.role: label.text for each in lens.report().diagnostics for label in each.labels}
    assert found["modified_here"] == "overwritten here"
    assert found["saved_here"] == "exp kept its result for backward"
    assert found["shared_here"] == "`shown` shares memory with `saved`"


def test_of_the_changed_tensors_that_are_dead_the_last_are_kept() -> None:
    last = 2 * MOST_RELATED
    calls = [call for number in range(last) for call in (0, number, 0, number, NONE, 1, 0)]
    run = CallRun(0, array("q", calls).tobytes(), array("I", range(7, len(calls) + 1, 7)).tobytes(), "")
    changed = ChangedTensors()
    changed.add([run], [])
    assert changed.latest({last - 1}) == set(range(last - 1 - MOST_RELATED, last - 1))
    assert changed.latest({last - 2}) == set(range(last - 1 - MOST_RELATED, last - 2))
