"""Finds the cause of `collective-timed-out`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.report import Diagnostic

_WHY = "every process of the group has to start the same collectives in the same order: another one did not"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports the line that waited. Where the other ranks were, the traces of all ranks show."""
    for rejected in rejected_calls(facts, "collective-timed-out"):
        waited = op_text(rejected.op) if rejected.op else "a collective"
        yield finding(
            "collective-timed-out",
            rejected.severity,
            f"{waited} waited for another process of the group until its time limit",
            _WHY,
            [facts.label("rejected_here", rejected.site, "waits for the other processes")],
            fixes=(fix("look for the line at which the other process was"),),
            evidence={"op": rejected.op, "message": rejected.message},
        )
