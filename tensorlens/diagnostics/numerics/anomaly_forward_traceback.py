"""Finds the cause of `anomaly-forward-traceback`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._anomaly import find_announced
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_announced(
        facts,
        "anomaly-forward-traceback",
        "anomaly mode keeps the Python stack of each operation, and prints that of the one whose backward failed",
        ("look at what this line was given: the printed stack leads to it", "graph_built_here"),
    )
