"""Finds the cause of `input-does-not-require-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.backward_call._requested_gradients import find_requested
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_requested(
        facts,
        "input-does-not-require-grad",
        "the gradient of {name} was asked for, but {name} does not require grad",
        "autograd records only what leads back to tensors that require grad",
    )
