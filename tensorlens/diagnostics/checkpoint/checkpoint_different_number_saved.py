"""Finds the cause of `checkpoint-different-number-saved`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.checkpoint._recomputation import find_rerun
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_rerun(
        facts,
        "checkpoint-different-number-saved",
        "the function of a checkpoint saved another number of tensors when backward ran it again",
        "a checkpoint keeps no intermediate results: backward runs its function again and needs the same ones",
    )
