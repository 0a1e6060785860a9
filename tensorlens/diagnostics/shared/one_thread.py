"""Withholds findings about lines that several threads run at once: what they rest on has no order there."""

from __future__ import annotations

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.report import Diagnostic


def ran_in_one_thread(facts: TraceIndex, diagnostic: Diagnostic) -> bool:
    """Returns whether no labelled line was run by several threads at the same time."""
    spans = [facts.trace.sites[fact.site].span for fact in facts.trace.inspection.threads]
    lines = {(span.file, line) for span in spans for line in range(span.line, span.end_line + 1)}
    return all((label.span.file, label.span.line) not in lines for label in diagnostic.labels)
