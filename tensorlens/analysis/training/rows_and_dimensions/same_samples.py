"""Decides whether two values have the same samples, in one order: both come from one value, or from one batch."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.row_starts import COLLATED, TAKING, Start, row_starts
from tensorlens.analysis.training.rows_and_dimensions.sorted_rows import are_together

_TURNING = frozenset("flip fliplr flipud roll sort argsort topk".split())
_MOST_CALLS = 400


def are_of_same_samples(facts: TraceIndex, one: int, other: int, before: int) -> bool:
    """Returns whether a value that is there before an event and one of the same pass are known to have these."""
    earlier = bisect_left(facts.backwards, before, key=attrgetter("index"))
    since = facts.backwards[earlier - 1].index if earlier else -1
    later = facts.backwards[earlier].index if earlier < len(facts.backwards) else before
    if _above(facts, one, before, since) & _above(facts, other, later, since):
        return True
    starts = [row_starts(facts, one, before), row_starts(facts, other, later)]
    if any(are_together(facts, first, second) for first in starts[0] for second in starts[1]):
        return True
    sizes = {facts.tensor(number).shape[:1] for number in (one, other)}
    are_whole = all(each and all(_is_older(start, since) for start in each) for each in starts)
    return earlier > 0 and len(sizes) == 1 and are_whole


def _is_older(start: Start, event: int) -> bool:
    return start.call is None or start.call.index < event


def _above(facts: TraceIndex, number: int, before: int, since: int) -> set[int]:
    """Returns the values of a pass that one is computed from, up to what takes its rows or puts its batch together.

    Of a call that takes rows, the index counts. Parameters have no samples.
    """
    found, waiting = set[int](), [(number, before)]
    for value, at in waiting:
        if value in found or len(found) > _MOST_CALLS or facts.is_leaf_requiring_grad(value, at - 1):
            continue
        made = next(iter(facts.producers(value, at)), None)
        if made is None or made.index < since or not made.inputs:
            continue
        found.add(value)
        is_start = op_name(made) in COLLATED or op_name(made) in _TURNING
        inputs = made.inputs[1:] if op_name(made) in TAKING and len(made.inputs) > 1 else made.inputs
        waiting += [] if is_start else [(access.tensor, made.index) for access in inputs]
    return found
