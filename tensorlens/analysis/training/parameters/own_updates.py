"""Finds parameters in half precision that the program's own lines update by their gradients, in half precision."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import elements
from tensorlens.analysis.training.timeline import Moment
from tensorlens.records.model import Call

_SUMS = frozenset("add radd iadd sub rsub isub addcmul addcdiv".split())
_PRODUCTS = frozenset("mul rmul imul".split())
_SCALING = frozenset("mul imul div idiv itruediv clip clamp nan_to_num".split())
_CASTS = frozenset("to float half bfloat16 double type detach clone view_as view reshape get".split())
_OF_EACH = _SUMS | _PRODUCTS | _SCALING | _CASTS | frozenset(
    "copy truediv rtruediv rdiv lerp sign neg abs sqrt rsqrt square pow norm mean sum max maximum reciprocal clamp_min "
    "linalg_vector_norm stack zeros zeros_like full tensor set requires_grad".split()
)  # fmt: skip
_MOST_CALLS = 200
_FEWEST = 2


def updates_in_half(training: MeasuredTraining, row: ParameterRow) -> list[Call]:
    """Returns the calls that update a parameter without an optimizer, each by a gradient that a pass has just given.

    It returns none if an update may be kept anywhere else, as in a float32 copy or in a second sum of what is lost, if
    it may leave elements out, or if a line may have brought earlier values back.
    """
    if training.training.is_hidden:
        return []
    moments = training.training.moments.get(row.tensor, [])
    fills = [moment.index for moment in moments if moment.kind == "fill"]
    updates = [each for each in moments if each.kind == "update" and fills and each.index > fills[0]]
    calls = [each.event for each in updates if each.fresh and isinstance(each.event, Call)]
    others = [each.event for each in updates if not each.fresh or not isinstance(each.event, Call)]
    decays = [event for event in others if isinstance(event, Call) and op_name(event) in _PRODUCTS]
    are_decays = len(decays) == len(others) and not any(_may_mask(training, row, call) for call in decays)
    rounds = [bisect_left(fills, call.index) for call in calls]
    if len(calls) < _FEWEST or not are_decays or len({*rounds}) < len(rounds):
        return []
    if not all(_scales(training, row, each) for each in moments):
        return []
    span = fills[rounds[-2] - 1], fills[rounds[-2]]
    return calls if _is_sum(training, row, calls[-2]) and _is_whole(training, row, calls[-2], span) else []


def _scales(training: MeasuredTraining, row: ParameterRow, moment: Moment) -> bool:
    """Returns whether what changes a gradient changes all of its elements alike, as a clip does."""
    if moment.kind != "touch":
        return True
    call = moment.event
    return isinstance(call, Call) and _plain(call) in _SCALING | _SUMS and not _may_mask(training, row, call)


def _plain(call: Call) -> str:
    return op_name(call).removeprefix("foreach_")


def _may_mask(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a call multiplies two tensors with the shape of a parameter, or its value by other elements."""
    shape, changed = training.facts.tensor(row.tensor).shape, call.outputs or call.writes
    if _plain(call) not in _PRODUCTS:
        return False
    if op_name(call).startswith("foreach_"):
        return len(call.inputs) > len(changed)
    shapes = {each.tensor: training.facts.tensor(each.tensor).shape for each in call.inputs}
    return sum(each == shape or elements(each) > 1 for each in shapes.values()) > 1


def _source(training: MeasuredTraining, number: int, leaf: int) -> int:
    """Returns the tensor that has the values of another one, which is an alias or a cast of it: at most the leaf."""
    for _ in range(_MOST_CALLS):
        made = training.facts.creator(number)
        if number == leaf or made is None or op_name(made) not in _CASTS or not made.inputs:
            break
        number = made.inputs[0].tensor
    return number


def _reads(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    return any(_source(training, access.tensor, row.tensor) == row.tensor for access in call.inputs)


def _is_sum(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a call adds to the parameter, or gives it a sum of its own value and another."""
    made: Call | None = call
    if op_name(call) in ("copy", "set"):
        made = training.facts.creator(_source(training, call.inputs[-1].tensor, row.tensor))
    return made is not None and _plain(made) in _SUMS and _reads(training, row, made)


def _is_whole(training: MeasuredTraining, row: ParameterRow, call: Call, span: tuple[int, int]) -> bool:
    """Returns whether all that an update computes goes into the parameter, and none of it may keep elements out."""
    made = {call.index: call}
    for access in call.inputs:
        if _source(training, access.tensor, row.tensor) != row.tensor:
            found = ancestry(training.facts, access.tensor, call.index, _MOST_CALLS)
            made |= {each.index: each for _, each in found if each.index > span[0]}
    if any(_plain(each) not in _OF_EACH or _may_mask(training, row, each) for each in made.values()):
        return False
    return all(each.index in made for each in _sums(training, row, span))


def _sums(training: MeasuredTraining, row: ParameterRow, span: tuple[int, int]) -> Iterator[Call]:
    """Yields the sums of the parameter with others outside the graph: one computes what another has lost, perhaps."""
    facts, shape = training.facts, training.facts.tensor(row.tensor).shape
    for call in facts.calls_between(*span):
        made = [access.tensor for access in call.outputs or call.writes]
        is_like = any(facts.tensor(number).shape == shape for number in made)
        is_outside = call.mode != "grad" or not any(facts.requires_grad(number, call.index) for number in made)
        if _plain(call) in _SUMS and is_like and is_outside and _reads(training, row, call):
            yield call
