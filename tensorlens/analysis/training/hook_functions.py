"""Finds the calls that run inside the hooks of a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Call


def in_hooks(facts: TraceIndex, calls: Iterable[Call], kind: str) -> Iterator[Call]:
    """Yields those of some calls whose line is in a function that the program registered as a hook of a kind, or that
    are such a hook themselves."""
    callbacks = facts.trace.callbacks
    numbers = {each.function for each in callbacks.registrations if each.kind == kind}
    spans = (facts.span(each.defined) for each in callbacks.functions if each.id in numbers)
    defined = {(span.file, span.line) for span in spans if span is not None}
    whole = hooks_without_lines(facts, kind)
    for call in calls if defined or whole else ():
        if any(access.tensor in whole for access in call.outputs):
            yield call
            continue
        span = facts.span(call.site)
        function = None if span is None else function_around(facts, span.file, span.line)
        lines = () if span is None else (span.line,) if function is None else (span.line, function.lineno)
        if span is not None and any((span.file, line) in defined for line in lines):  # a lambda is on its call's line
            yield call


def hooks_without_lines(facts: TraceIndex, kind: str) -> dict[int, Registration]:
    """Maps what hooks of a kind have returned that are no function of the program, as `partial(torch.mul, mask)`, to
    their registrations."""
    callbacks = facts.trace.callbacks
    outside = {each.id for each in callbacks.functions if each.defined is None}
    found = {each.id: each for each in callbacks.registrations if each.kind == kind and each.function in outside}
    runs = (run for run in callbacks.runs if run.registration in found) if found else ()
    return {
        value.tensor: found[run.registration] for run in runs for value in run.values[:1] if value.tensor is not None
    }
