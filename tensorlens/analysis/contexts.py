"""Special modes and checkpoints over time: what was open at an event, and what was run again in a backward pass."""

from __future__ import annotations

from collections import Counter

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Change, Event, Failure, Region


def open_region(facts: TraceIndex, before: int, *kinds: str) -> Region | None:
    """The innermost special mode that was open at event `before`; of the kinds that begin so, where any are given."""
    left: Counter[str] = Counter()
    for event in reversed(_until(facts, before)):
        if not isinstance(event, Region) or not event.name.startswith(kinds or ""):
            continue
        if not event.entering:
            left[event.name] += 1
        elif left[event.name]:
            left[event.name] -= 1
        else:
            return event
    return None


def recomputing_checkpoint(facts: TraceIndex, before: int) -> Region | None:
    """The checkpoint whose function was being run again at event `before`."""
    inner = open_region(facts, before, "recomputation")
    return None if inner is None else _opened(facts, inner)


def last_recomputed_checkpoint(facts: TraceIndex, failure: Failure) -> Region | None:
    """The checkpoint whose function was run again last in the backward pass that failed."""
    backward = failed_backward(facts, failure)
    start = failure.index if backward is None else backward.started
    for event in reversed(_until(facts, failure.index)):
        if event.index < start:
            return None
        if isinstance(event, Region) and event.name == "recomputation":
            return _opened(facts, event)
    return None


def failed_backward(facts: TraceIndex, failure: Failure) -> Backward | None:
    """The backward pass that something failed in: the innermost that encloses it and did not end well."""
    return failed_backward_at(facts, failure.index)


def failed_backward_at(facts: TraceIndex, at: int) -> Backward | None:
    around = (b for b in facts.backwards if b.started <= at <= b.index and b.failed)
    return min(around, key=lambda b: b.index - b.started, default=None)


def changes_between_runs(facts: TraceIndex, checkpoint: Region, before: int) -> list[Change]:
    """What the function of a checkpoint found changed when it was run again before event `before`."""
    found = [e for e in facts.events if isinstance(e, Change) and e.checkpoint == checkpoint.index]
    first = {change.name: change for change in reversed(found) if change.index < before}
    return list(first.values())[::-1]


def _opened(facts: TraceIndex, recomputation: Region) -> Region | None:
    opened = facts.event(recomputation.checkpoint)
    return opened if isinstance(opened, Region) else None


def _until(facts: TraceIndex, before: int) -> tuple[Event, ...]:
    """The events before the one with this index."""
    return facts.events[: facts.trace.position(before)]
