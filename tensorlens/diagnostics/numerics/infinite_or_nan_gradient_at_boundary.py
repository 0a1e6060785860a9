"""Finds the cause of `infinite-or-nan-gradient-at-boundary`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._nonfinite import find_singular
from tensorlens.records.report import Diagnostic

CODE = "infinite-or-nan-gradient-at-boundary"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_singular(facts, CODE)
