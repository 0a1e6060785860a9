"""Which run of a line an event belongs to: "the 3rd time this ran", said only where the runs can be counted."""

from __future__ import annotations

from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call


def run_number(facts: TraceIndex, event: Call | Backward) -> tuple[int, int] | None:
    """(the number of the run of its line that `event` belongs to, the number of runs in all); None where the calls of
    two runs can't be told apart.

    An expression that is one op, or one backward pass, ran once for each event. What a module or library code called
    belongs to one run as long as control was only in what the line itself called.
    """
    site = facts.trace.sites[event.site]
    within = isinstance(event, Call) and bool(event.within)
    if not within and facts.names.syntax.is_direct(site, event.op):
        return _counted(facts, event)
    if facts.trace.events[-1].index + 1 > len(facts.trace.events):
        return None  # a long run: earlier calls are folded
    begun = _begun(facts, event.site)
    return sum(index <= event.index for index in begun), len(begun)


def _counted(facts: TraceIndex, event: Call | Backward) -> tuple[int, int]:
    kept = [e.index for e in facts.events if isinstance(e, type(event)) and (e.site, e.op) == (event.site, event.op)]
    known = sum(total.count for total in facts.trace.totals if (total.site, total.op) == (event.site, event.op))
    total = max(known, len(kept))
    return total - sum(index > event.index for index in kept), total


def _begun(facts: TraceIndex, site: int) -> list[int]:
    """The events that begin a run of a site, without those after a function that the site called returned."""
    found: list[int] = []
    inside = False
    for event in facts.events:
        if not isinstance(event, Call | Backward):
            continue
        if event.site == site:
            if not inside:
                found.append(event.index)
            inside = True
        elif inside:
            inside = site in callers(facts.trace, event.site)
    return found
