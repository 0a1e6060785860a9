"""Finds the line that called the function of an event, in that very run.

A trace has the whole stack of a failure, and for each site the line that called its function when the site first ran.
For other runs the caller's own calls before and after the event may leave only one expression that can have called the
function: then that is the line. Where they leave several, there is no answer.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator

from tensorlens.analysis.clocks import Clocks
from tensorlens.analysis.naming.blocks import Statement
from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.loops import is_reached
from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.naming.places import Scope, callers
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.records.model import Backward, Call, Span, Trace

_HARMLESS = frozenset("print len range int float str round zip enumerate isinstance list tuple dict set".split())


class CallerLines:
    """Finds the calls that led to events of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._clocks = Clocks(trace)
        self._syntax = names_of(trace).syntax
        self._first_sites: dict[Scope, int] = {}
        self._reached: dict[Scope, list[tuple[Statement, list[int]]]] = {}
        for site in trace.sites:
            self._first_sites.setdefault(self._clocks.scope(site.id), site.id)
        for number, events in self._clocks.of.values():
            statement = self._clocks.statement(number)
            if statement is not None and is_reached(statement):
                self._reached.setdefault(self._clocks.scope(number), []).append((statement, events))

    def call_number(self, event: Call | Backward) -> int | None:
        """Returns how many calls of its function had begun at an event, its own among them; None if that is not
        known."""
        scope, statement = self._clocks.scope(event.site), self._clocks.statement(event.site)
        if scope in self._clocks.unsteady or not self._clocks.is_script or statement is None:
            return None
        if scope in self._clocks.called:
            return self._clocks.times(self._clocks.called[scope], 0, event.index)
        for reached, events in self._reached.get(scope, ()):
            times = self._clocks.times(events, 0, event.index)
            if times is None:
                continue
            if reached.node.lineno < statement.node.lineno or event.index in events:
                return times
            if reached.node.lineno > (statement.node.end_lineno or 0):
                return times + 1
        return None

    def chain(self, event: Call | Backward) -> list[int]:
        """Returns the sites that certainly led to an event, the innermost first: those of its function's first call."""
        if self.call_number(event) != 1:
            return []
        known, below = list[int](), self._first_sites[self._clocks.scope(event.site)]
        for caller in self._outer(event.site):
            known.append(caller)
            if caller != below - 1 or any(site == caller for site, _ in self._clocks.ops):
                break  # the caller ran before, perhaps from elsewhere
            below = caller
        return known

    def recorded(self, site: int) -> list[int]:
        """Returns the sites that led to the first run of a site, the innermost first. Those far out may have led to
        another."""
        return list(self._outer(site))

    def _outer(self, site: int) -> Iterator[int]:
        scope = self._clocks.scope(site)
        if scope[1] == "<module>":
            return iter(())  # an import, or what started the script
        return (caller for caller in callers(self._trace, site) if self._clocks.scope(caller) != scope)

    def has_callers(self, site: int) -> bool:
        """Returns whether several lines certainly called the function of a site."""
        return len(self._callers_of(self._clocks.scope(site))) > 1

    def _callers_of(self, scope: Scope) -> set[int | None]:
        sites = (site.id for site in self._trace.sites if self._clocks.scope(site.id) == scope)
        return {next(self._outer(site), None) for site in sites}

    def is_shared(self, site: int) -> bool:
        """Returns whether several calls certainly ran the function of a site."""
        scope = self._clocks.scope(site)
        counts = (*(events for _, events in self._reached.get(scope, ())), self._clocks.called.get(scope, []))
        return self.has_callers(site) or any(len(events) > 1 for events in counts)

    def line(self, event: Call | Backward) -> Span | None:
        """Returns the call that led to an event, in a function that calls the event's function."""
        chain = self.chain(event)
        if chain:
            return self._trace.sites[chain[0]].span
        scope = self._clocks.scope(event.site)
        outer = self._callers_of(scope)
        scopes = {self._clocks.scope(caller) for caller in outer if caller is not None}
        if len(scopes) != 1 or None in outer or scope in self._clocks.unsteady:
            return None
        return self._between(scopes.pop(), event)

    def _between(self, scope: Scope, event: Call | Backward) -> Span | None:
        """Returns the only expression between the caller's events around `event` that can have made the call."""
        events = self._clocks.events_in.get(scope, [])
        at = bisect_left(events, (event.index, -1))
        if not at or scope in self._clocks.unsteady or not self._clocks.is_script:
            return None
        before, after = events[at - 1], self._next(scope, events, at)
        if after is None or not self._clocks.is_whole(before[0], event.index):
            return None
        first, last = self._clocks.statement(before[1]), self._clocks.statement(after)
        if first is None or last is None or first.block != last.block:
            return None
        site, clock = self._clocks.of.get(first.node, (-1, []))
        begin, end = first.block.index(first.node), first.block.index(last.node)
        if site < 0 or before[0] < clock[max(bisect_left(clock, before[0] + 1) - 1, 0)] or begin > end:
            return None  # the caller may have begun again
        calls = list(self._calls(first.block[begin : end + 1], before[1], after))
        outermost = [call for call in calls if all(_is_inside(other, call) for other in calls)]
        return outermost[0] if outermost else None

    def _next(self, scope: Scope, events: list[tuple[int, int]], at: int) -> int | None:
        """Returns the site of the caller's next event; if there is none, the line of it that failed."""
        if at < len(events):
            return events[at][1]
        number = self._trace.script.failure
        stack = () if number is None else self._trace.failures[number].stack
        return next((site for site in stack if self._clocks.scope(site) == scope), None)

    def _calls(self, block: tuple[ast.stmt, ...], before: int, after: int) -> Iterator[Span]:
        """Yields the calls in some statements that can have run between two sites, except those of torch itself."""
        first, last = self._trace.sites[before].span, self._trace.sites[after].span
        text = self._trace.sources.get(first.file, "")
        ops = {self._trace.sites[site].span for site, op in self._clocks.ops if self._is_direct(site, op)}
        for node in (node for statement in block for node in ast.walk(statement)):
            if not isinstance(node, ast.Call) or (isinstance(node.func, ast.Name) and node.func.id in _HARMLESS):
                continue
            span = span_of(node, text, first.file)
            is_later = _begin(span) >= _end(first) or (span != first and _is_inside(first, span))
            is_earlier = span == last or _begin(span) < _begin(last) or _is_inside(span, last)
            if is_later and is_earlier and span not in ops and (span == last or not _is_inside(last, span)):
                yield span

    def _is_direct(self, site: int, op: str) -> bool:
        return self._syntax.is_direct(self._trace.sites[site], op)


def _begin(span: Span) -> tuple[int, int]:
    return span.line, span.column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column


def _is_inside(inner: Span, outer: Span) -> bool:
    return _begin(outer) <= _begin(inner) and _end(inner) <= _end(outer)


@once_per_trace
def caller_lines(trace: Trace) -> CallerLines:
    return CallerLines(trace)
