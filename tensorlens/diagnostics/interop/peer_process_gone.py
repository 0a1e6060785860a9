"""Finds the cause of `peer-process-gone`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports the line that waited, and says that the cause is in another process."""
    for rejected in rejected_calls(facts, "peer-process-gone"):
        waited = f" while {op_text(rejected.op)} waited for it" if rejected.op else ""
        yield finding(
            "peer-process-gone",
            rejected.severity,
            f"another process of the group closed its connection{waited}",
            "this process only waited: what ended the other one is in the output of that process",
            [facts.label("rejected_here", rejected.site, "waits for the other processes")],
            fixes=(fix("look for the error in the output of the process that ended first"),),
            evidence={"op": rejected.op, "message": rejected.message},
        )
