"""Finds the calls that run inside the hooks of a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


def in_hooks(facts: TraceIndex, calls: Iterable[Call], kind: str) -> Iterator[Call]:
    """Yields those of some calls whose line is in a function that the program registered as a hook of a kind."""
    callbacks = facts.trace.callbacks
    numbers = {each.function for each in callbacks.registrations if each.kind == kind}
    spans = (facts.span(each.defined) for each in callbacks.functions if each.id in numbers)
    defined = {(span.file, span.line) for span in spans if span is not None}
    for call in calls if defined else ():
        span = facts.span(call.site)
        function = None if span is None else function_around(facts, span.file, span.line)
        lines = () if span is None else (span.line,) if function is None else (span.line, function.lineno)
        if span is not None and any((span.file, line) in defined for line in lines):  # a lambda is on its call's line
            yield call
