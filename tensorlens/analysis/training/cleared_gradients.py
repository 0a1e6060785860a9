"""Gradients that were meant to add up: before every update, some of the same backward call were cleared unused."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.analysis.training.timeline import Moment, Training
from tensorlens.records.model import Backward, Call

MIN_UPDATES = 2  # updates


@dataclass(frozen=True, slots=True)
class ClearedGradients:
    """The gradients of one leaf that were cleared although an update was to follow."""

    leaf: int
    filled: Moment
    cleared: Moment
    used: Moment  # the update, which had the last gradient alone
    count: int  # how many were cleared before it
    updates: int  # before how many updates that was so


def cleared_gradients(training: Training, leaf: int) -> ClearedGradients | None:
    """What was cleared before the last update, if it was so before all of them, and the program read none of it."""
    if leaf in training.gradient_read or leaf not in training.stepped:
        return None
    pending: Moment | None = None
    lost: list[tuple[Moment, Moment]] = []
    found: list[ClearedGradients] = []
    for moment in training.moments.get(leaf, ()):
        if moment.kind == "fill":
            pending = moment
        elif moment.kind == "touch":
            pending = None
        elif moment.kind == "clear" and pending is not None:
            lost.append((pending, moment))
            pending = None
        elif moment.kind == "update" and pending is not None and moment.fresh:
            same = [pair for pair in lost if _is_alike(pair[0], pending)]
            if not same or _in_closure(training, pending):
                return None
            found.append(ClearedGradients(leaf, *same[-1], moment, len(same), len(found) + 1))
            pending, lost = None, []
    return found[-1] if len(found) >= MIN_UPDATES else None


def _is_alike(one: Moment, other: Moment) -> bool:
    """Whether two passes are of one line and reached the same leaves: a helper may serve a generator and its critic."""
    first, second = one.event, other.event
    if not isinstance(first, Backward) or not isinstance(second, Backward) or first.site != second.site:
        return False
    return {change.tensor for change in first.gradients} == {change.tensor for change in second.gradients}


def _in_closure(training: Training, filled: Moment) -> bool:
    """Whether the optimizer's own step asked for this pass: it may try several values and keep one."""
    events = training.facts.events
    before = events[training.facts.trace.position(filled.index) - 1]
    return isinstance(before, Call) and bool(before.within)
