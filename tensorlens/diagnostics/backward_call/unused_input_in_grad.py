"""Finds the cause of `unused-input-in-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.backward_call._requested_gradients import find_requested
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_requested(
        facts,
        "unused-input-in-grad",
        "the gradient of {name} was asked for, but {root} was not computed from it",
        "no recorded operation leads from {root} back to {this}",
    )
