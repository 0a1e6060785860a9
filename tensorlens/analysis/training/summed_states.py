"""Finds sums of the states of several models that are the parameters of one of them, because no line has copied it.

`OrderedDict(state)` and `dict(state)` are new dicts with the same tensors. A line that adds the tensors of another
model's `state_dict()` to them, as `total[name].add_(tensor)`, changes the first model, which steps go on training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import ParameterRow
from tensorlens.records.model import Call

_ADDING = frozenset(("add", "iadd"))
_STATE = "Module.state_dict"


@dataclass(frozen=True, slots=True)
class SummedState:
    """A parameter, and the line that adds another model's tensor to an item of a `state_dict()`."""

    row: ParameterRow
    change: Call  # the first one
    made: int  # site of the `state_dict()`


def summed_states(facts: TraceIndex, rows: Iterable[ParameterRow]) -> Iterator[SummedState]:
    """Yields these parameters, if steps change them right before and right after the sum.

    A line that scales the sum in place, or loads other values into the parameter, makes it right again.
    """
    for row in rows:
        events = [event for event, _ in facts.writes(facts.tensor(row.tensor).counter)] if row.is_stepped else []
        first: tuple[Call, int] | None = None
        is_trained = False
        for event in events:
            if not isinstance(event, Call):
                break
            made = None if event.within else _state_of(facts, event)
            if made is not None and (first is not None or is_trained):
                first = first or (event, made)
            elif event.within and first is not None:
                yield SummedState(row, *first)
                break
            else:
                first = None
            is_trained = bool(event.within)


def _state_of(facts: TraceIndex, change: Call) -> int | None:
    """Returns the site of the `state_dict()` that has an item, if a call adds an item of another one to it."""
    if op_name(change) not in _ADDING or len(change.inputs) != 2 or not change.writes:
        return None
    changed, added = (_made_by_state(facts, access.tensor) for access in change.inputs)
    memory = [facts.storage_of(access.tensor, change.index) for access in change.inputs]
    return changed if added is not None and memory[0] != memory[1] else None


def _made_by_state(facts: TraceIndex, number: int) -> int | None:
    made = facts.creator(number)
    return made.site if made is not None and facts.trace.sites[made.site].through == _STATE else None
