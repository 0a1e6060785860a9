"""Finds the cause of `anomaly-no-forward-info`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._anomaly import find_announced
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_announced(
        facts,
        "anomaly-no-forward-info",
        "the stack of an operation is kept only while anomaly mode is on, and it was off in the forward pass",
        "put the forward pass inside anomaly mode too",
    )
