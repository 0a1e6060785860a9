"""Finds a tensor that a call used and a later call changed before the backward pass that failed.

Changes of its autograd state and of its storage count. `saved_tensors` finds writes to its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Failure, State

StateChange = Callable[[State, State], bool]  # of the states before and after a call


@dataclass(frozen=True, slots=True)
class ChangedAfterUse:
    """A tensor that the recorded call `use` read, and that the later call `change` detached or moved to other
    memory."""

    tensor: int
    use: Call
    change: Call


def changed_after_use(facts: TraceIndex, failure: Failure, changed: StateChange) -> list[ChangedAfterUse]:
    """Finds the tensors in the graph of the failed backward that a call changed after their use, one for each line.

    The tensor nearest to the roots is first. `changed` tests the states before and after a call for the change in
    question.
    """
    found: dict[int, ChangedAfterUse] = {}
    for root in failure.inputs:
        for _, use in ancestry(facts, root.tensor, failure.index):
            if not _is_recorded(facts, use):
                continue
            for access in use.inputs:
                change = next(_changes(facts, access.tensor, (use.index, failure.index), changed), None)
                if change is not None:
                    found.setdefault(access.tensor, ChangedAfterUse(access.tensor, use, change))
    return list({each.change.site: each for each in reversed(found.values())}.values())[::-1]


def _is_recorded(facts: TraceIndex, call: Call) -> bool:
    return any(facts.requires_grad(access.tensor, call.index) for access in call.outputs)


def _changes(facts: TraceIndex, number: int, between: tuple[int, int], changed: StateChange) -> Iterator[Call]:
    after, before = between
    for call in facts.calls:
        if after < call.index < before and any(state.tensor == number for state in call.states):
            old, new = facts.state(number, call.index - 1), facts.state(number, call.index)
            if old is not None and new is not None and changed(old, new):
                yield call


def lost_history(old: State, new: State) -> bool:
    """Returns whether a computed tensor lost its history, as after `detach_()`."""
    return old.requires_grad and not old.is_leaf and not new.requires_grad


def became_non_leaf(old: State, new: State) -> bool:
    """Returns whether a leaf became the result of an operation, as after a recorded change in place."""
    return old.is_leaf and new.requires_grad and not new.is_leaf


def moved_to_other_storage(old: State, new: State) -> bool:
    """Returns whether the tensor got another storage, as after `.data = ...`, `set_` or `swap_tensors`."""
    return old.storage is not None and new.storage is not None and old.storage != new.storage
