"""Finds sums that are assigned to items of a tensor at an index that names some items more than once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.plain_values import may_require_grad
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.one_memory import elements
from tensorlens.records.model import Call
from tensorlens.records.training_values import RepeatedIndices

_READS = frozenset(("getitem", "index_select"))
_SUMS = frozenset(("add", "sub", "iadd", "isub", "radd"))
_SCALES = frozenset(
    "mul rmul imul div truediv itruediv true_divide neg clamp clamp_min clamp_max detach to float double half".split()
)
_MAX_TERMS, _MAX_CALLS = 8, 200
_MIN_DIFFERENT = 2  # one item that is named often takes what nothing reads, as padding


@dataclass(frozen=True, slots=True)
class LostAddition:
    """An assignment of the items that it replaces plus other values, of which one for each item stays."""

    call: Call
    counts: RepeatedIndices


def lost_additions(facts: TraceIndex) -> Iterator[LostAddition]:
    """Yields these assignments, one for each line."""
    reported: set[int] = set()
    for each in facts.trace.inspection.repeated_indices:
        call = facts.call(each.index)
        if each.different < _MIN_DIFFERENT or call is None or call.site in reported or len(call.inputs) < 2:
            continue
        if _adds_to_items(facts, call):
            reported.add(call.site)
            yield LostAddition(call, each)


def _adds_to_items(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an assignment writes a sum of the items at its index and of values that do not depend on them.

    An average, as `bank[i] += 0.1 * (x - bank[i])`, keeps the last value of each item on purpose. Values that are
    items of another tensor at the same index, as `total[i]`, are equal where the index is: one of them is enough.
    """
    written, *index, value = (access.tensor for access in call.inputs)
    waiting, others, reads = [(value, call.index)], list[int](), list[Call]()
    for number, limit in waiting:
        made = next(iter(facts.producers(number, limit)), None)
        if made is not None and _reads_items(made, written, index):
            reads.append(made)
        elif made is not None and op_name(made) in _SUMS and len(waiting) <= _MAX_TERMS:
            waiting += [(access.tensor, made.index) for access in made.inputs]
        else:
            others.append(number)
    if len(reads) != 1 or (not others and _is_penalty(facts, call)):
        return False
    if others and all(_are_items(facts, each, index, call.index) for each in others):
        return False
    version = reads[0].inputs[0].version
    before = (made for number in others for _, made in ancestry(facts, number, call.index, _MAX_CALLS))
    return not any(_reads_items(made, written, index) and made.inputs[0].version == version for made in before)


def _is_penalty(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a sum with one number changes each item once on purpose: a number that is subtracted, or that is
    added to what a model computes, as the logits of the tokens that a text has had."""
    value = next(iter(facts.producers(call.inputs[-1].tensor, call.index)), None)
    if value is None or "sub" in op_name(value):
        return True
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.value, ast.UnaryOp):
        return True
    before = ancestry(facts, call.inputs[0].tensor, call.index, _MAX_CALLS)
    return may_require_grad(facts.tensor(call.inputs[0].tensor)) and any(
        facts.tensor(access.tensor).type.endswith("Parameter") for _, made in before for access in made.inputs
    )


def _are_items(facts: TraceIndex, number: int, index: list[int], before: int) -> bool:
    """Returns whether values are the items of some tensor at an index, or those times one number."""
    for _ in range(_MAX_TERMS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        if op_name(made) in _READS and [access.tensor for access in made.inputs[1:]] == index:
            return True
        many = [each.tensor for each in made.inputs if elements(facts.tensor(each.tensor).shape) > 1]
        if op_name(made) not in _SCALES or len(many) != 1:
            return False
        number, before = many[0], made.index
    return False


def _reads_items(call: Call, tensor: int, index: list[int]) -> bool:
    return op_name(call) in _READS and [access.tensor for access in call.inputs] == [tensor, *index]
