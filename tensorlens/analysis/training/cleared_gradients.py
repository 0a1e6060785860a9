"""Finds gradients that were meant to accumulate, but were cleared before the update used them."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.analysis.training.timeline import Moment, Training
from tensorlens.records.model import Backward, Call

MIN_UPDATES = 2


@dataclass(frozen=True, slots=True)
class ClearedGradients:
    """The gradients of one leaf that were cleared before an update."""

    leaf: int
    filled: Moment  # the backward pass that computed the last of them
    cleared: Moment  # what cleared it
    used: Moment  # the update, which used only the last gradient
    count: int  # gradients cleared before this update
    updates: int  # updates before which gradients were cleared


def cleared_gradients(training: Training, leaf: int) -> ClearedGradients | None:
    """Finds the gradients of a leaf that were cleared before its last update.

    None unless gradients were cleared before every update, and there are `MIN_UPDATES` or more: a single case may be
    intended. None also if the script reads the gradient.
    """
    if leaf in training.gradient_read or leaf not in training.stepped:
        return None
    pending: Moment | None = None
    cleared: list[tuple[Moment, Moment]] = []  # (filled, cleared)
    updates: list[ClearedGradients] = []
    for moment in training.moments.get(leaf, ()):
        if moment.kind == "fill":
            pending = moment
        elif moment.kind == "touch":
            pending = None
        elif moment.kind == "clear" and pending is not None:
            cleared.append((pending, moment))
            pending = None
        elif moment.kind == "update" and pending is not None and moment.fresh:
            same = [pair for pair in cleared if _is_alike(pair[0], pending)]
            if not same or _in_closure(training, pending):
                return None
            updates.append(ClearedGradients(leaf, *same[-1], moment, len(same), len(updates) + 1))
            pending, cleared = None, []
    return updates[-1] if len(updates) >= MIN_UPDATES else None


def _is_alike(one: Moment, other: Moment) -> bool:
    """Returns whether two backward passes ran on one line and reached the same leaves.

    The line alone does not decide: a helper function may run the backward of a generator and of its critic.
    """
    first, second = one.event, other.event
    if not isinstance(first, Backward) or not isinstance(second, Backward) or first.site != second.site:
        return False
    return {change.tensor for change in first.gradients} == {change.tensor for change in second.gradients}


def _in_closure(training: Training, filled: Moment) -> bool:
    """Returns whether a step ran this backward in its closure. An optimizer may try several values there and keep
    one."""
    events = training.facts.events
    before = events[training.facts.trace.position(filled.index) - 1]
    return isinstance(before, Call) and bool(before.within)
