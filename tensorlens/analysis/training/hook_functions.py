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
    defined, whole = _defined(facts, kind), hooks_without_lines(facts, kind)
    for call in calls if defined or whole else ():
        if any(access.tensor in whole for access in call.outputs) or _places(facts, call) & defined.keys():
            yield call


def registration_around(facts: TraceIndex, call: Call, kind: str) -> Registration | None:
    """Returns the first registration of the hook whose function has the line of a call."""
    defined = _defined(facts, kind)
    return next((defined[place] for place in _places(facts, call) if place in defined), None)


def _defined(facts: TraceIndex, kind: str) -> dict[tuple[str, int], Registration]:
    """Maps the lines that define hooks of a kind to the first registration of each."""
    callbacks, found = facts.trace.callbacks, dict[tuple[str, int], Registration]()
    functions = {each.id: facts.span(each.defined) for each in callbacks.functions}
    for each in callbacks.registrations:
        span = functions.get(each.function) if each.kind == kind else None
        if span is not None:
            found.setdefault((span.file, span.line), each)
    return found


def _places(facts: TraceIndex, call: Call) -> set[tuple[str, int]]:
    """Returns the line of a call, where a lambda is defined, and that of the function around it."""
    span = facts.span(call.site)
    function = None if span is None else function_around(facts, span.file, span.line)
    lines = () if span is None else (span.line,) if function is None else (span.line, function.lineno)
    return set() if span is None else {(span.file, line) for line in lines}


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
