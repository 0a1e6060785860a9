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
        "the checkpointed function saved more tensors when it was run again",
        "backward needs what the function saved, and running it again must save the same tensors",
    )
