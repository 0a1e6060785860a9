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
        "anomaly mode knows the line of an operation only if it was on when that ran, and here it began later",
        ("switch it on before the forward pass: the warning then shows the line", "mode_entered_here"),
    )
