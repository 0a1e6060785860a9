"""Finds the cause of `parameter-built-from-nonleaf`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.cut_off_parameters import find_cut_off
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_cut_off(facts, "parameter-built-from-nonleaf", lambda cut: cut.call.op == "nn.Parameter")
