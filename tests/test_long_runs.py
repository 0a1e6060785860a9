"""A long run gives a short report: lines with counts, and the last of the tensors that are gone."""

from __future__ import annotations

import json

import torch

import tensorlens
from tensorlens.render import render
from tensorlens.render.json import MAX_EVENTS, MAX_TENSORS

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
