"""Finds the cause of `none-grad-arithmetic`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.gradients._none_gradient import find_none_gradient
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_none_gradient(facts, "none-grad-arithmetic")
