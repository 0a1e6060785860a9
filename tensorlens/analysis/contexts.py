"""Finds the contexts that were open at an event, and the checkpointed functions that a backward recomputed."""

from __future__ import annotations

from collections import Counter

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Change, Event, Failure, Region


def open_region(facts: TraceIndex, before: int, *kinds: str) -> Region | None:
    """Finds the innermost context that was open at event `before`.

    With `kinds`, only contexts whose names begin with one of these count.
    """
    closed: Counter[str] = Counter()
    for event in reversed(_until(facts, before)):
        if not isinstance(event, Region) or not event.name.startswith(kinds or ""):
            continue
        if not event.entering:
            closed[event.name] += 1
        elif closed[event.name]:
            closed[event.name] -= 1
        else:
            return event
    return None


def recomputing_checkpoint(facts: TraceIndex, before: int) -> Region | None:
    """Finds the checkpoint whose function was being recomputed at event `before`."""
    recomputation = open_region(facts, before, "recomputation")
    return None if recomputation is None else _checkpoint_of(facts, recomputation)


def last_recomputed_checkpoint(facts: TraceIndex, failure: Failure) -> Region | None:
    """Finds the checkpoint whose function the failed backward recomputed last."""
    backward = failed_backward(facts, failure)
    start = failure.index if backward is None else backward.started
    for event in reversed(_until(facts, failure.index)):
        if event.index < start:
            return None
        if isinstance(event, Region) and event.name == "recomputation":
            return _checkpoint_of(facts, event)
    return None


def failed_backward(facts: TraceIndex, failure: Failure) -> Backward | None:
    """Finds the innermost failed backward pass that encloses the failure."""
    return failed_backward_at(facts, failure.index)


def failed_backward_at(facts: TraceIndex, at: int) -> Backward | None:
    around = (b for b in facts.backwards if b.started <= at <= b.index and b.failed)
    return min(around, key=lambda b: b.index - b.started, default=None)


def changes_between_runs(facts: TraceIndex, checkpoint: Region, before: int) -> list[Change]:
    """Lists what had changed for a checkpointed function when backward ran it again, before event `before`.

    Of several changes of one name it lists the first.
    """
    changes = [e for e in facts.events if isinstance(e, Change) and e.checkpoint == checkpoint.index]
    first = {change.name: change for change in reversed(changes) if change.index < before}
    return list(first.values())[::-1]


def _checkpoint_of(facts: TraceIndex, recomputation: Region) -> Region | None:
    checkpoint = facts.event(recomputation.checkpoint)
    return checkpoint if isinstance(checkpoint, Region) else None


def _until(facts: TraceIndex, before: int) -> tuple[Event, ...]:
    """Returns the events before event `before`."""
    return facts.events[: facts.trace.position(before)]
