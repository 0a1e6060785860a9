"""Finds the line that turned gradient recording off."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tensorlens.records.model import GradMode, Trace


def open_switch(trace: Trace, switches: Sequence[GradMode], before: int) -> GradMode | None:
    """Returns the switch, such as `no_grad`, that had turned gradient recording off at event `before`.

    `switches` are those of the trace, in order.

    Each thread has a mode of its own. If a second thread had switched its mode and not switched it back,
    the answer is None: which thread the event belongs to is not known.
    """
    earlier = switches[: bisect_left(switches, before, key=lambda event: event.index)]
    others = {fact.site for fact in trace.inspection.switching}
    if others and sum(1 if event.entering else -1 for event in earlier if event.site in others) > 0:
        return None
    depth = 0
    for event in reversed(earlier):
        if event.site in others:
            continue
        if not event.entering:
            depth += 1
        elif depth:
            depth -= 1
        elif event.mode == "grad":
            return None
        elif event.cause != "enable_grad":  # inside `inference_mode`, that changes nothing
            return event
    return None
