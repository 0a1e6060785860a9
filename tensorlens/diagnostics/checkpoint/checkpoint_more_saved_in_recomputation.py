"""Finds the cause of `checkpoint-more-saved-in-recomputation`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.checkpoint._recomputation import find_rerun
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_rerun(
        facts,
        "checkpoint-more-saved-in-recomputation",
        "the function of a checkpoint saved more tensors when backward ran it again",
        "a checkpoint keeps no intermediate results: backward runs its function again and needs the same ones",
    )
