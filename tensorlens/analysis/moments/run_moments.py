"""Lists the moments of a run in order: its events, and what happened between two events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property

from tensorlens.analysis.story.phrases import REGION_TEXTS
from tensorlens.analysis.trace_index import has_event
from tensorlens.records.model import Backward, Call, Failure, GradMode, Notice, Region, Trace
from tensorlens.records.observations import Overwrite

What = Call | Backward | GradMode | Region | Notice | Failure | Overwrite | None
FIRST = 2_000  # moments of a long run that are kept at its beginning, where modules and optimizers are made
LAST = 18_000  # and at its end


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a run. A failure or a hidden write happened before the event `index`; `what` is None at the end."""

    index: int
    site: int | None
    what: What


class Moments:
    """The moments of a run that a page shows; of a long run the first, the last and those `needed` by a finding."""

    def __init__(self, trace: Trace, needed: Container[int] = frozenset()) -> None:
        self.trace = trace
        found = sorted(_found(trace), key=lambda each: (each.index, not isinstance(each.what, Overwrite | Failure)))
        middle = range(FIRST, len(found) - LAST)
        kept = [each for place, each in enumerate(found) if place not in middle or each.index in needed]
        end = trace.events[-1].index + 1 if trace.events else 0
        self.items = [*kept, Moment(end, None, None)]
        self.left_out = len(found) - len(kept)

    @cached_property
    def _indices(self) -> list[int]:
        return [each.index for each in self.items]

    @cached_property
    def _events(self) -> dict[int, int]:
        events = (Call, Backward, GradMode, Region, Notice)
        return {each.index: place for place, each in enumerate(self.items) if isinstance(each.what, events)}

    @cached_property
    def _failures(self) -> dict[int, int]:
        return {id(each.what): place for place, each in enumerate(self.items) if isinstance(each.what, Failure)}

    def of_event(self, index: int | None) -> int | None:
        """Returns the position of an event; None if it is not shown."""
        return None if index is None else self._events.get(index)

    def since(self, index: int) -> int:
        """Returns the position of the first moment that is event `index` or later."""
        return min(bisect_left(self._indices, index), len(self.items) - 1)

    def of_failure(self, failure: Failure) -> int | None:
        """Returns the position of a failure, which may be that of the event that failed."""
        if id(failure) in self._failures:
            return self._failures[id(failure)]
        for index in (failure.index, failure.index - 1):
            event = self.trace.event(index)
            if event is not None and event.site == failure.site and getattr(event, "failed", False):
                return self.of_event(index)
        return None

    def last_at(self, site: int | None, before: int) -> int | None:
        """Returns the position of the last moment up to position `before` at a site, or on the site's line."""
        if site is None:
            return None
        spans = self.trace.sites
        line = spans[site].span.file, spans[site].span.line
        for place in range(before, -1, -1):
            other = self.items[place].site
            if other is not None and (other == site or (spans[other].span.file, spans[other].span.line) == line):
                return place
        return None


def _found(trace: Trace) -> Iterator[Moment]:
    for event in trace.events:
        if isinstance(event, Call | Backward | GradMode | Notice) or (
            isinstance(event, Region) and event.entering and event.name in REGION_TEXTS
        ):
            yield Moment(event.index, event.site, event)
    for failure in trace.failures:
        if not has_event(trace, failure):
            yield Moment(failure.index, failure.site, failure)
    for overwrite in trace.inspection.overwrites:
        site = overwrite.sites[0] if len(set(overwrite.sites)) == 1 else None
        yield Moment(overwrite.index, site, overwrite)
