"""Finds the cause of `nan-gradient-from-unselected-branch`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._nonfinite import find_singular
from tensorlens.records.report import Diagnostic

CODE = "nan-gradient-from-unselected-branch"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_singular(facts, CODE)
