"""Finds the line that turned gradient recording off."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.records.model import GradMode, Trace


def open_switch(trace: Trace, before: int) -> GradMode | None:
    """Returns the switch, such as `no_grad`, that had turned gradient recording off at event `before`.

    Each thread has a mode of its own. If a second thread had switched its mode and not switched it back,
    the answer is None: which thread the event belongs to is not known.
    """
    others = {fact.site for fact in trace.inspection.switching}
    if others and sum(1 if event.entering else -1 for event in _switches(trace, before) if event.site in others) > 0:
        return None
    depth = 0
    for event in _switches(trace, before):
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


def _switches(trace: Trace, before: int) -> Iterator[GradMode]:
    """Yields the switches before an event, the latest first."""
    return (event for event in reversed(trace.events[: trace.position(before)]) if isinstance(event, GradMode))
