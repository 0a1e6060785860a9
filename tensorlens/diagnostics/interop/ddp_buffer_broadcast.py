"""Finds the cause of `ddp-buffer-broadcast`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.silent_saved_tensor import find_overwritten
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_overwritten(facts, "ddp-buffer-broadcast", by_broadcast=True)
