"""A long run gives a short report: lines with counts, and the last of the tensors that are gone."""

from __future__ import annotations

import json
import time

import torch

import tensorlens
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
