"""Finds sums of the states of several models that are the parameters of one of them, because no line has copied it.

`OrderedDict(state)` and `dict(state)` are new dicts with the same tensors. A line that adds the tensors of another
model's `state_dict()` to them, as `total[name].add_(tensor)` and `torch._foreach_add_()` do, changes the first model,
which steps go on training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_ADDING = frozenset(("add", "iadd"))
_SCALING = frozenset("mul imul rmul div idiv truediv itruediv".split())
_ALIASES = frozenset(("Tensor.detach", "Tensor.data.__get__"))
_STATE = "Module.state_dict"
_MOST = 4


@dataclass(frozen=True, slots=True)
class SummedState:
    """A parameter, and the line that adds another model's tensor to an item of a `state_dict()`."""

    row: ParameterRow
    change: Call  # the first one
    made: int  # site of the `state_dict()`


def summed_states(training: MeasuredTraining) -> Iterator[SummedState]:
    """Yields these parameters, if steps change them right before and right after the sum.

    A line that scales the sum in place, or loads other values into the parameter, makes it right again; but not if the
    next line mixes the parameter with the item of the `state_dict()`, which is the parameter itself.
    """
    facts = training.facts
    for row in training.rows:
        first: tuple[Call, int] | None = None
        scaled: tuple[Call, int] | None = None  # a sum that a line has scaled since
        is_trained = False
        for event in _writes(training, row) if row.is_stepped else ():
            made = None if event.within else _state_of(training, row.tensor, event)
            if made is not None and (first is not None or is_trained):
                first = first or (event, made)
            elif event.within and first is not None:
                yield SummedState(row, *first)
                break
            elif (first or scaled) is not None and _is_scaling(event):
                first, scaled = None, first or scaled
            else:
                first = scaled if scaled is not None and _mixes_with_itself(facts, row.tensor, event) else None
                scaled = None
            is_trained = bool(event.within)


def _writes(training: MeasuredTraining, row: ParameterRow) -> list[Call]:
    """Returns the calls that write to a parameter, also by its `.data`, in order; those before a pass that does."""
    events = [event for event, _ in training.facts.writes(training.facts.tensor(row.tensor).counter)]
    passes = [event.index for event in events if not isinstance(event, Call)]
    calls = {event.index: event for event in events if isinstance(event, Call)}
    calls |= {call.index: call for call in training.written_after(row.tensor, -1)}
    return [calls[index] for index in sorted(calls) if not passes or index < passes[0]]


def _state_of(training: MeasuredTraining, parameter: int, change: Call) -> int | None:
    """Returns the site of the `state_dict()` that has an item, if a call adds an item of another one to it.

    The values of a model that no step trains may be noise that is meant.
    """
    facts = training.facts
    pair = _pair(facts, parameter, change) if _plain(change) in _ADDING else None
    if pair is None or not change.writes:
        return None
    changed, added = (_made_by_state(facts, number) for number in pair)
    memory = [facts.storage_of(number, change.index) for number in pair]
    if added is None or memory[0] == memory[1]:
        return None
    is_trained = any(memory[1] in facts.storages_of(number) for number in training.training.stepped)
    return changed if is_trained else None


def _pair(facts: TraceIndex, parameter: int, change: Call) -> tuple[int, int] | None:
    """Returns what a call changes and what it adds: of `torch._foreach_add_()`, those in the place of a parameter."""
    numbers = [access.tensor for access in change.inputs]
    if not op_name(change).startswith("foreach_"):
        return (numbers[0], numbers[1]) if len(numbers) == 2 else None
    count, own = len(change.writes), facts.storages_of(parameter)
    places = [n for n, each in enumerate(numbers[:count]) if facts.storage_of(each, change.index) in own]
    return (numbers[places[0]], numbers[count + places[0]]) if places and len(numbers) == 2 * count else None


def _is_scaling(change: Call) -> bool:
    """Returns whether a call multiplies tensors by a number, in place."""
    return _plain(change) in _SCALING and not change.within and len(change.inputs) == len(change.writes)


def _mixes_with_itself(facts: TraceIndex, parameter: int, write: Call) -> bool:
    """Returns whether a call gives a parameter a sum of itself and of an item of a `state_dict()` that is the same."""
    made: Call | None = write
    if op_name(write) == "copy" or write.op == DATA_SET:
        made = _maker(facts, write.inputs[-1].tensor, write.index)
    if made is None or op_name(made) not in _ADDING | {"lerp"} or len(made.inputs) < 2:
        return False
    own = facts.storages_of(parameter)
    mixed = [_unscaled(facts, access.tensor, made.index) for access in made.inputs[:2]]
    if not all(facts.storage_of(number, made.index) in own for number in mixed):
        return False
    return mixed[0] != mixed[1] and any(_made_by_state(facts, number) is not None for number in mixed)


def _unscaled(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that another one is a multiple of."""
    for _ in range(_MOST):
        made = _maker(facts, number, before)
        if made is None or op_name(made) not in _SCALING or len(made.inputs) != 1 or made.writes:
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def _maker(facts: TraceIndex, number: int, before: int) -> Call | None:
    return next(iter(facts.producers(number, before)), None)


def _made_by_state(facts: TraceIndex, number: int) -> int | None:
    """Returns the site of the `state_dict()` that an item is of, also if a line has taken its `.data`."""
    for _ in range(_MOST):
        made = facts.creator(number)
        if made is None or facts.trace.sites[made.site].through == _STATE:
            return None if made is None else made.site
        if made.op not in _ALIASES or not made.inputs:
            break
        number = made.inputs[0].tensor
    return None


def _plain(call: Call) -> str:
    return op_name(call).removeprefix("foreach_")
