"""Finds the number of the run of a line that an event belongs to, for "the 3rd time this ran"."""

from __future__ import annotations

from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call


def run_number(facts: TraceIndex, event: Call | Backward) -> tuple[int, int] | None:
    """Returns (the number of the run of its line that `event` belongs to, how often the line ran).

    An expression that is one op, or one backward pass, ran once for each of its events. Library code may make several
    calls in one run of a line: the run lasts until an event comes from outside the functions that the line called. None
    if a long run no longer has the calls that separate the runs.
    """
    site = facts.trace.sites[event.site]
    within = isinstance(event, Call) and bool(event.within)
    if not within and facts.names.syntax.is_direct(site, event.op):
        return _counted(facts, event)
    if facts.trace.events[-1].index + 1 > len(facts.trace.events):
        return None  # a long run: earlier calls are folded
    first_events = _first_events(facts, event.site)
    return sum(index <= event.index for index in first_events), len(first_events)


def _counted(facts: TraceIndex, event: Call | Backward) -> tuple[int, int]:
    kept = [e.index for e in facts.events if isinstance(e, type(event)) and (e.site, e.op) == (event.site, event.op)]
    known = sum(total.count for total in facts.trace.totals if (total.site, total.op) == (event.site, event.op))
    total = max(known, len(kept))
    return total - sum(index > event.index for index in kept), total


def _first_events(facts: TraceIndex, site: int) -> list[int]:
    """Returns the index of the first event in each run of a site."""
    first: list[int] = []
    inside = False
    for event in facts.events:
        if not isinstance(event, Call | Backward):
            continue
        if event.site == site:
            if not inside:
                first.append(event.index)
            inside = True
        elif inside:
            inside = site in callers(facts.trace, event.site)
    return first
