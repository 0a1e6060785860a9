"""Finds targets of a cross entropy that were put together of classes, and whose rows do not add up to 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls
from tensorlens.analysis.training.losses.row_sums import Linear, row_sum
from tensorlens.records.model import Call

_LOSSES = frozenset(("cross_entropy", "kl_div"))
_KEPT = frozenset("float to clone detach contiguous getitem index_select".split())
_TOGETHER = frozenset("add radd iadd scatter setitem".split())
_DRAWN = frozenset("rand rand_like uniform bernoulli".split())
_SHAPED = frozenset("float to unsqueeze view reshape getitem index_select".split())
_LEAST = 0.05  # from 1: less is a matter of taste, as `eps / classes` beside `1 - eps`
_LEAST_FACTOR, _MOST_BESIDE = 0.5, 1.3
_MAX_CALLS, _MAX_ABOVE = 8, 40


@dataclass(frozen=True, slots=True)
class TargetSum:
    """A target whose rows add up to `total`, and the call that has put its parts together."""

    loss: Call
    made: Call
    total: Linear


def target_sums(facts: TraceIndex) -> Iterator[TargetSum]:
    """Yields these targets, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for call in loss_calls(facts, backward):
            target = _target(facts, call)
            made = None if target is None else _put_together(facts, target, call.index)
            if made is None or made.site in reported:
                continue
            found = row_sum(facts, (made.outputs or made.inputs)[0].tensor, made.index + 1)
            if found is not None and _is_other(found.total) and _is_meant_as_one(facts, made, found.total):
                reported.add(made.site)
                yield TargetSum(call, made, found.total)


def _target(facts: TraceIndex, call: Call) -> int | None:
    """Returns the target of a cross entropy: of a function, as a written product may be one part of a loss."""
    shapes = [facts.tensor(access.tensor).shape for access in call.inputs]
    is_loss = op_name(call) in _LOSSES and len(shapes) == 2 and shapes[0] == shapes[1] and len(shapes[0]) == 2
    return call.inputs[1].tensor if is_loss else None


def _put_together(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that has put a target together of its parts; rows may be taken of the whole, or weighted by
    drawn numbers or a mask. Another factor may be the one that makes the sums 1."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _TOGETHER:
            return made
        shape = facts.tensor(number).shape
        inputs = [access.tensor for access in made.inputs]
        wide = [each for each in inputs if facts.tensor(each).shape[1:] == shape[1:]]
        if op_name(made) not in _KEPT | {"mul", "rmul"} or len(wide) != 1 or made.writes:
            return None
        others = [each for each in inputs if each != wide[0]]
        if op_name(made) not in _KEPT and not (others and _weighs_rows(facts, others[0], made.index, shape[0])):
            return None
        number, before = wide[0], made.index
    return None


def _weighs_rows(facts: TraceIndex, number: int, before: int, rows: int) -> bool:
    """Returns whether a tensor has a drawn number, or a truth value, for each row."""
    if facts.tensor(number).shape != (rows, 1):
        return False
    for _ in range(_MAX_CALLS):
        if facts.tensor(number).dtype == "bool":
            return True
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _DRAWN:
            return made is not None
        if op_name(made) not in _SHAPED or not made.inputs or made.writes:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_meant_as_one(facts: TraceIndex, made: Call, total: Linear) -> bool:
    """Returns whether a target is to be one distribution: a cross entropy is linear in its target, so a sum of two may
    stand for a sum of two losses. A smoothing adds the same number to each class; two targets are mixed by a drawn
    number."""
    above = [call for access in made.inputs for _, call in ancestry(facts, access.tensor, made.index, _MAX_ABOVE)]
    if any(op_name(call) in ("softmax", "sigmoid") for call in above):
        return False
    if total.unknown:
        key = total.unknown[0][0]
        return total.number == 2.0 or (isinstance(key, int) and facts.tensor(key).shape[1:] == (1,))
    if total.number == round(total.number) or _is_weight(facts, made):
        return False
    sums = [row_sum(facts, access.tensor, made.index) for access in made.inputs]
    if op_name(made) in ("scatter", "setitem") and total.number < 1.0:
        return False  # a weight of the class, and one of a smoothing
    if len(sums) == 1 and sums[0] is not None and sums[0].total == Linear(1.0) and total.number < _MOST_BESIDE:
        return False  # a whole loss, and a share of an even one beside it
    return op_name(made) in ("scatter", "setitem") or len(sums) == 1 or any(each and each.each for each in sums)


def _is_weight(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a number is set in zeros: it is the weight of the loss, and not a share that others leave."""
    if op_name(made) not in ("scatter", "setitem"):
        return False
    before = row_sum(facts, made.inputs[0].tensor, made.index)
    return before is None or before.each is None or before.each == Linear(0.0)


def _is_other(total: Linear) -> bool:
    """Returns whether a sum is another one than 1. Of a value that is not known, it must be so for all but one: 0, or 1
    if it is subtracted from 2. With that value the sum has one part only."""
    if len(total.unknown) > 1:
        return False
    if total.unknown:
        factor = total.unknown[0][1]
        return (total.number == 1.0 and abs(factor) >= _LEAST_FACTOR) or (total.number, factor) == (2.0, -1.0)
    return abs(total.number - 1.0) > _LEAST
