"""Finds losses that shift targets by one step, although the targets begin one step after the inputs already."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.next_steps import FROM_SECOND, TO_LAST, has_slice, slices_of
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_LOSSES = frozenset(("cross_entropy", "nll_loss"))
_SAME = frozenset("to long int contiguous clone cpu cuda".split())
_MAX_CALLS = 8


@dataclass(frozen=True, slots=True)
class ShiftedTwice:
    """A loss, the index that shifts its targets, and the one that has shifted them before."""

    loss: Call
    second: Call
    first: Call
    inputs: int  # the ids that the model is given


def shifted_twice(facts: TraceIndex) -> Iterator[ShiftedTwice]:
    """Yields these losses, one for each line."""
    reported: set[int] = set()
    passes = [recorded_above(facts, backward) for backward in examined_passes(facts)]
    plain = {number for above in passes for number in _plain(facts, above)}
    for above in passes:
        losses = [call for call in above if op_name(call) in _LOSSES and len(call.inputs) > 1]
        shifts = [(call, _shift(facts, call)) for call in losses]
        given = [call.inputs[0].tensor for call in above if op_name(call) == "embedding"]
        for loss, second in shifts:
            if second is None or loss.site in reported or second.inputs[0].tensor in plain:
                continue
            first = _origin(facts, second.inputs[0].tensor, second.index)
            for number in given if first is not None else ():
                other = _origin(facts, number, loss.index)
                if first is not None and other is not None and _is_one_later(facts, first, other):
                    reported.add(loss.site)
                    yield ShiftedTwice(loss, second, first, number)
                    break


def _plain(facts: TraceIndex, above: tuple[Call, ...]) -> Iterator[int]:
    """Yields the targets that a loss takes from their first step on: that loss may be for the next step."""
    for loss in above:
        if op_name(loss) not in _LOSSES | {"gather"} or len(loss.inputs) < 2:
            continue
        number, before = loss.inputs[1].tensor, loss.index
        for _ in range(_MAX_CALLS):
            yield number
            made = next(iter(facts.producers(number, before)), None)
            if made is None or not made.inputs or op_name(made) not in RESHAPING or has_slice(facts, made, FROM_SECOND):
                break
            number, before = made.inputs[0].tensor, made.index


def _shift(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns the index that takes the targets of a loss from the second step on, if the predictions are those up to
    the last one."""
    predicted = _part(facts, loss.inputs[0].tensor, loss.index)
    wanted = _part(facts, loss.inputs[1].tensor, loss.index)
    if predicted is None or wanted is None or not has_slice(facts, predicted, TO_LAST):
        return None
    return wanted if has_slice(facts, wanted, FROM_SECOND) else None


def _part(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the index with a slice that made a tensor, perhaps in another shape."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in RESHAPING:
            return None
        if op_name(made) == "getitem":
            return made if any(slices_of(facts, made)) else None
        number, before = made.inputs[0].tensor, made.index
    return None


def _origin(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the index that took ids from a longer sequence; of a stack of several, that of the first."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or (len(made.inputs) > 1 and op_name(made) != "stack"):
            return None
        if op_name(made) == "getitem":
            return made if any(slices_of(facts, made)) else None
        if op_name(made) not in _SAME | {"stack"}:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_one_later(facts: TraceIndex, first: Call, other: Call) -> bool:
    """Returns whether two indices take parts of one sequence, the first of which begins one step after the other."""
    begins = [[each.lower for each in slices_of(facts, call) if each.lower or each.upper] for call in (first, other)]
    if first.inputs[0].tensor != other.inputs[0].tensor or [len(each) for each in begins] != [1, 1]:
        return False
    shapes = [facts.tensor(call.outputs[0].tensor).shape for call in (first, other)]
    later, earlier = begins[0][0], begins[1][0]
    if later is None or shapes[0] != shapes[1]:
        return False
    if earlier is None or written_number(facts, earlier) == 0:
        return written_number(facts, later) == 1
    terms = [later.left, later.right] if isinstance(later, ast.BinOp) and isinstance(later.op, ast.Add) else []
    texts = [ast.unparse(each) for each in terms if written_number(facts, each) != 1]
    return texts == [ast.unparse(earlier)]
