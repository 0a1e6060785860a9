"""Finds who writes to the memory of a tensor, who shares it, and which nodes saved it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.states import last_states
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Backward, Call, Failure, Write
from tensorlens.records.observations import Overwrite


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """A write to the storage of a tensor: one that moved a version counter, or one that moved none."""

    index: int
    event: Call | Backward | Overwrite
    write: Write | None


def writes_to(facts: TraceIndex, number: int) -> list[MemoryWrite]:
    """Returns the writes to a tensor's storage since the tensor was made, in order."""
    storages, counter = facts.storages_of(number), facts.tensor(number).counter
    born = facts.tensor(number).created_by or -1
    end = facts.events[-1].index if facts.events else 0
    found = []
    for event in facts.events:
        for write in _writes(event):
            same = facts.tensor(write.tensor).counter == counter
            if event.index > born and (same or facts.storage_of(write.tensor, event.index) in storages):
                found.append(MemoryWrite(event.index, event, write))  # type: ignore[arg-type]
    for overwrite in facts.trace.inspection.overwrites:
        other = overwrite.tensor
        if other is None or not born < overwrite.index <= end + 1 or not storages & facts.storages_of(other):
            continue
        if not any(_is_same(facts, overwrite, each) for each in found):
            found.append(MemoryWrite(overwrite.index, overwrite, None))
    return sorted(found, key=lambda each: each.index)


def _is_same(facts: TraceIndex, overwrite: Overwrite, other: MemoryWrite) -> bool:
    """Returns whether a recorded call made a write that no version counter shows, as `x.data.mul_(2)` does."""
    if not isinstance(other.event, Call):
        return False
    site = other.event.site
    return any(facts.same_line(site, each) for each in overwrite.sites) and abs(other.index - overwrite.index) <= 1


def _writes(event: object) -> Iterator[Write]:
    if isinstance(event, Call):
        yield from event.writes
    elif isinstance(event, Backward):
        yield from (gradient.write for gradient in event.gradients if gradient.write is not None)


def sharers(facts: TraceIndex, number: int) -> list[int]:
    """Returns the named tensors in the same storage: those alive when the run ended or, if that is not known, all."""
    names = facts.names
    storage = names.storage_of(number)
    if storage is None:
        return []
    end = facts.trace.end.states
    if any(state.tensor == number for state in end):
        others = [state.tensor for state in end]
    else:
        others = [state.tensor for state in last_states(facts.trace)]
    found = [other for other in others if other != number and names.storage_of(other) == storage]
    return [other for other in found if names.is_named(other)]


def saved_by(facts: TraceIndex, number: int) -> Iterator[tuple[Failure, SavedTensor]]:
    """Yields the saved tensors of failed backward passes that are this tensor, or are in its storage."""
    storage = facts.names.storage_of(number)
    for failure in facts.trace.failures:
        for saved in failure.saved:
            if saved.tensor == number or (storage is not None and saved.storage == storage):
                yield failure, saved
