"""Tensors that a graph was recorded with and that were made into something else before backward came to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Failure, State

StateChange = Callable[[State, State], bool]


@dataclass(frozen=True, slots=True)
class ChangedAfterUse:
    tensor: int
    use: Call  # recorded with the tensor as it was
    change: Call  # made it into something else


def changed_after_use(facts: TraceIndex, failure: Failure, changed: StateChange) -> ChangedAfterUse | None:
    """The tensor nearest to the failed backward's roots whose state after its use changed as `changed` says."""
    for root in failure.inputs:
        for _, use in ancestry(facts, root.tensor, failure.index):
            if not _recorded(facts, use):
                continue
            for access in use.inputs:
                change = next(_changes(facts, access.tensor, (use.index, failure.index), changed), None)
                if change is not None:
                    return ChangedAfterUse(access.tensor, use, change)
    return None


def _recorded(facts: TraceIndex, call: Call) -> bool:
    return any(facts.requires_grad(access.tensor, call.index) for access in call.outputs)


def _changes(facts: TraceIndex, number: int, between: tuple[int, int], changed: StateChange) -> Iterator[Call]:
    after, before = between
    for call in facts.calls:
        if after < call.index < before and any(state.tensor == number for state in call.states):
            old, new = facts.state(number, call.index - 1), facts.state(number, call.index)
            if old is not None and new is not None and changed(old, new):
                yield call


def lost_history(old: State, new: State) -> bool:
    """A computed tensor lost its history: `detach_()`."""
    return old.requires_grad and not old.is_leaf and not new.requires_grad


def became_non_leaf(old: State, new: State) -> bool:
    """A leaf was made the result of an operation."""
    return old.is_leaf and new.requires_grad and not new.is_leaf


def moved_to_other_storage(old: State, new: State) -> bool:
    """The tensor lies in other memory: `.data = ...`, `set_`, `swap_tensors`."""
    return old.storage is not None and new.storage is not None and old.storage != new.storage
