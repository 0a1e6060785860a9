"""Finds the lines that wrote memory outside torch, by a further run that compares the memory line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlens.journal.child_config import Intervention

if TYPE_CHECKING:  # imported after the first child has been started
    from tensorlens.records.model import Site, Trace
    from tensorlens.records.observations import Overwrite
    from tensorlens.runner.compared_runs import FurtherRuns

_WITHIN_TORCH = ("Tensor.data.__get__", "Tensor.data.__set__", "Tensor.set_")
_NEAR = 6  # events before a change: lines are followed from each of them to the next call of torch


def with_exact_lines(runs: FurtherRuns, trace: Trace) -> Trace:
    """Returns the trace with the exact lines of the writes outside torch that its findings are about.

    Makes no further run if it has none. Where the further run does not show the line, the trace stays as it is.
    """
    wanted = _outside(trace)
    if not wanted:
        return trace
    places = dict.fromkeys(place for number in wanted for place in _places_before(trace, number))
    if not places:
        return trace
    second = runs.again(interventions=tuple(places)).trace()
    return _with_lines(trace, second, wanted)


def _outside(trace: Trace) -> list[int]:
    """Returns the positions of the changes outside torch that reached a backward pass."""
    facts = trace.inspection
    stale = {each.overwrite for each in facts.stale if each.overwrite is not None}
    return [number for number in sorted(stale) if _is_outside(facts.overwrites[number])]


def _is_outside(overwrite: Overwrite) -> bool:
    way = overwrite.way
    inside = way in _WITHIN_TORCH or "_fused" in way or way.endswith("batch_norm")
    return overwrite.opened is not None and not inside and not overwrite.exact


def _places_before(trace: Trace, number: int) -> Iterator[Intervention]:
    """Yields the places of the last calls before a change."""
    position = trace.position(trace.inspection.overwrites[number].index)
    for event in trace.events[max(position - _NEAR, 0) : position]:
        site = getattr(event, "site", None)
        if site is not None:
            span = trace.sites[site].span
            yield Intervention("find_writes", span.file, span.line, span.column, span.end_line, span.end_column)


def _with_lines(first: Trace, second: Trace, wanted: list[int]) -> Trace:
    sites, sources = list(first.sites), dict(first.sources)
    overwrites = list(first.inspection.overwrites)
    for number in wanted:
        if not _is_same(first, second, number):
            continue
        change, written_lines = second.inspection.overwrites[number], second.inspection.written
        found = dict.fromkeys(w.site for w in written_lines if (w.index, w.tensor) == (change.index, change.tensor))
        places: list[int] = []
        for written in found:
            site = second.sites[written]
            sources.setdefault(site.span.file, second.sources.get(site.span.file, ""))
            places.append(_position(sites, site))
        if places:
            overwrites[number] = replace(overwrites[number], sites=tuple(places), exact=True)
    inspection = replace(first.inspection, overwrites=tuple(overwrites))
    return replace(first, sites=tuple(sites), sources=sources, inspection=inspection)


def _is_same(first: Trace, second: Trace, number: int) -> bool:
    """Returns whether the second run noticed the same change as the first: of memory that was opened at one place."""
    others = second.inspection.overwrites
    if number >= len(others):
        return False
    one, other = first.inspection.overwrites[number], others[number]
    places = [
        None if change.opened is None else trace.sites[change.opened].span
        for trace, change in ((first, one), (second, other))
    ]
    return (one.way, one.index, places[0]) == (other.way, other.index, places[1])


def _position(sites: list[Site], site: Site) -> int:
    """Returns the position of a site in a table, to which it is added if it is new."""
    for known in sites:
        if (known.span, known.function) == (site.span, site.function):
            return known.id
    sites.append(replace(site, id=len(sites), caller=None))
    return len(sites) - 1
