"""Adds the caller's line to a finding whose line is in a helper or a layer's `forward`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import in_iteration
from tensorlens.records.model import Backward, Call, Span
from tensorlens.records.report import Diagnostic, Label

_MAX_CALLERS = 2
_AMBIGUOUS = ("saved_here", "graph_built_here")  # lines of layers, which often run from several places


_Found = tuple[Label, Span]


def with_callers(facts: TraceIndex, diagnostic: Diagnostic) -> Diagnostic:
    """Adds labels at the calls that led to the primary line, to the line that failed, and to an ambiguous layer.

    There are at most two, and none at a line that has a label.
    """
    if any(label.role == "called_here" for label in diagnostic.labels):
        return diagnostic
    known = {(label.span.file, label.span.line) for label in diagnostic.labels}
    added: list[Label] = []
    for label, span in _calls(facts, diagnostic):
        if (span.file, span.line) not in known and len(added) < _MAX_CALLERS:
            known.add((span.file, span.line))
            added.append(Label("called_here", span, f"{_place(label, span)} runs inside this call"))
    return replace(diagnostic, labels=(*diagnostic.labels, *added)) if added else diagnostic


def _place(label: Label, caller: Span) -> str:
    file = label.span.file.replace("\\", "/").rpartition("/")[2]
    return f"line {label.span.line}" if label.span.file == caller.file else f"{file}:{label.span.line}"


def _calls(facts: TraceIndex, diagnostic: Diagnostic) -> Iterator[_Found]:
    """Yields labels with the call that led to each."""
    stack = _stack(facts, diagnostic)
    primary = diagnostic.labels[0] if diagnostic.labels else None
    if primary is not None and primary.site is not None:
        failed = next((label for label in diagnostic.labels if stack and label.span == facts.span(stack[-1])), None)
        if failed is primary:
            yield from ((primary, span) for span in _failed_in(facts, stack))
        elif failed is not None:
            yield from _apart(facts, diagnostic.labels, failed, stack)
        if failed is not primary and (span := _only_caller(facts, primary)) is not None:
            yield primary, span
    for label in diagnostic.labels[1:]:
        if label.role in _AMBIGUOUS and (span := _only_caller(facts, label)) is not None:
            yield label, span


def _failed_in(facts: TraceIndex, stack: tuple[int, ...]) -> Iterator[Span]:
    """Yields the call of the helper that failed, if it is in another file, or another line called it too."""
    if len(stack) > 1 and facts.trace.sites[stack[-1]].function != "<module>":
        lines = caller_lines(facts.trace)
        inner, outer = facts.span(stack[-1]), facts.span(stack[-2])
        if inner is not None and outer is not None and (inner.file != outer.file or lines.has_callers(stack[-1])):
            yield outer


def _apart(facts: TraceIndex, labels: tuple[Label, ...], failed: Label, stack: tuple[int, ...]) -> Iterator[_Found]:
    """Yields the calls of one function that led to the primary line and to the one that failed, if they differ."""
    primary = labels[0]
    if primary.site is None or (primary.role != "modified_here" and primary.span.file == failed.span.file):
        return
    lines = caller_lines(facts.trace)
    way = [*reversed(lines.recorded(primary.site)), primary.site]
    parting = next((at for at, (one, other) in enumerate(zip(way, stack, strict=False)) if one != other), len(way))
    certain = [lines.chain(event) for event in _events(facts, primary)]
    others = {label.site for label in labels if label is not primary and label is not failed}
    if parting < len(way) and any(way[parting] in (site, *lines.recorded(site)) for site in others if site is not None):
        return  # the call ran the other lines too: it does not set this one apart
    if parting < len(way) - 1 and certain and all(way[parting] in chain for chain in certain):
        yield primary, facts.trace.sites[way[parting]].span
        if parting < len(stack) - 1:
            yield failed, facts.trace.sites[stack[parting]].span


def _only_caller(facts: TraceIndex, label: Label) -> Span | None:
    """Returns the call that led to all runs that a label may mean, if another call led to other runs of its line."""
    lines, events = caller_lines(facts.trace), _events(facts, label)
    if label.site is None or not lines.is_shared(label.site):
        return None
    calls = {lines.line(event) for event in events}
    is_one_of_several = any(lines.line(event) not in calls for event in _events_at(facts, label.site))
    return calls.pop() if len(calls) == 1 and is_one_of_several else None


def _events(facts: TraceIndex, label: Label) -> list[Call | Backward]:
    """Returns the events that a label may mean: the one that it is about, else those of the iteration or call that its
    text names, else all."""
    events = _events_at(facts, label.site)
    about = [event for event in events if event.index == label.event]
    named = [event for event in events if (text := in_iteration(facts, event)) and f"{text} " in f"{label.text} "]
    return about or named or events


def _events_at(facts: TraceIndex, site: int | None) -> list[Call | Backward]:
    calls: list[Call | Backward] = [call for call in facts.calls if call.site == site]
    return [*calls, *(backward for backward in facts.backwards if backward.site == site)]


def _stack(facts: TraceIndex, diagnostic: Diagnostic) -> tuple[int, ...]:
    """Returns the lines that led to the failure that a finding is about, the outermost first."""
    number = facts.trace.script.failure
    failure = None if number is None else facts.trace.failures[number]
    spans = {label.span for label in diagnostic.labels}
    is_about = failure is not None and (span := facts.span(failure.site)) is not None and span in spans
    return failure.stack if failure is not None and is_about else ()
