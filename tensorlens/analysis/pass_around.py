"""Finds the backward pass that was running at a moment, by its nesting: a long run has thousands of passes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.records.model import Backward, Trace


@dataclass(frozen=True, slots=True)
class _Nesting:
    """Holds the passes of a trace in the order of their ends, and for each the place of the next one that started no
    later than it: the pass around it. The number of passes if there is none."""

    passes: tuple[Backward, ...]
    ends: tuple[int, ...]
    around: tuple[int, ...]


def pass_around(trace: Trace, index: int) -> Backward | None:
    """Finds the backward pass that contains an event: of several, the one that ended first."""
    nesting = _nesting(trace)
    place = bisect_left(nesting.ends, index)
    while place < len(nesting.passes):
        if nesting.passes[place].started <= index:
            return nesting.passes[place]
        place = nesting.around[place]
    return None


@once_per_trace
def _nesting(trace: Trace) -> _Nesting:
    passes = tuple(event for event in trace.events if isinstance(event, Backward))
    around = [len(passes)] * len(passes)
    for place in range(len(passes) - 2, -1, -1):
        outer = place + 1
        while outer < len(passes) and passes[outer].started > passes[place].started:
            outer = around[outer]
        around[place] = outer
    return _Nesting(passes, tuple(each.index for each in passes), tuple(around))
