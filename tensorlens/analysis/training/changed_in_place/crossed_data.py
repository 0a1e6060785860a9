"""Finds out which of two data sets a loss compares a result with, by the memory that values are parts of."""

from __future__ import annotations

import ast
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import loss_calls
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Backward, Call

_PARTS = RESHAPING | frozenset(
    "index_select narrow select split chunk unbind tensor_split unfold gather take_along_dim stack cat flip".split()
)
_JOINS = frozenset(("stack", "cat", "flip"))
_CHOICES = _PARTS - RESHAPING - _JOINS | {"getitem"}
_FIRST_ONLY = frozenset("getitem index_select gather take_along_dim".split())
_MAX_CALLS = 400


def is_of_first(facts: TraceIndex, settings: tuple[Call, Call], used: Call, backward: Backward) -> bool:
    """Returns whether the loss compares a result with the data of the first of two settings of a statistic.

    The target is a part of the same memory, or the first data is computed from it, and neither holds of the others.
    The other data is not computed from the first, as a moving average of it is.
    """
    first, last = (data_of(facts, each) for each in settings)
    if not first or not last:
        return False
    memory, above_first = _memory(facts, first), _above(facts, first)
    others, above_last = _memory(facts, last), _above(facts, last)
    if memory & (others | above_last):
        return False
    targets = [_memory(facts, [target]) for target in _targets(facts, used, backward)]
    is_met = any(target & memory or target & above_first for target in targets)
    return is_met and not any(target & (others | above_last) for target in targets)


def have_same_data(facts: TraceIndex, first: Call, last: Call) -> bool:
    """Returns whether two settings of a statistic have the same tensor, or parts of it that are written alike."""
    one, other = ({_source(facts, *each) for each in data_of(facts, setting)} for setting in (first, last))
    return bool(one & other)


def _source(facts: TraceIndex, number: int, before: int) -> tuple[object, ...]:
    """Returns the tensor that a value is a copy or a part of, and the parts that were taken."""
    taken: list[object] = []
    while calls := facts.producers(number, before)[:1]:
        call = calls[0]
        if op_name(call) not in _PARTS - _JOINS or not call.inputs:
            break
        place = [access.tensor for access in call.outputs].index(number) if len(call.outputs) > 1 else 0
        if op_name(call) in _CHOICES:
            taken.append((place, *(access.tensor for access in call.inputs[1:]), _chosen(facts, call)))
        number, before = call.inputs[0].tensor, call.index
    return (number, *taken)


def _chosen(facts: TraceIndex, call: Call) -> str:
    """Returns how the code writes a part: "[:, :12]", or "" if a tensor alone says which."""
    node = facts.node_at(call.site)
    if isinstance(node, ast.Subscript):
        return "" if len(call.inputs) > 1 and not isinstance(node.slice, ast.Tuple) else ast.unparse(node.slice)
    return "" if node is None else ast.unparse(node).partition("(")[2]


def data_of(facts: TraceIndex, setting: Call) -> list[tuple[int, int]]:
    """Returns the data that a statistic is computed from: the largest input of the calls of the same function."""
    scope = facts.scope(setting.site)
    inputs = [(access.tensor, setting.index) for access in setting.inputs]
    for made in (each for number, before in inputs for each in facts.producers(number, before)[:1]):
        if facts.scope(made.site) == scope and len(inputs) < _MAX_CALLS:
            inputs += [(access.tensor, made.index) for access in made.inputs]
    size = max((_elements(facts, number) for number, _ in inputs), default=0)
    return [each for each in inputs if _elements(facts, each[0]) == size]


def _elements(facts: TraceIndex, number: int) -> int:
    size = 1
    for each in facts.tensor(number).shape:
        size *= each
    return size


def _targets(facts: TraceIndex, used: Call, backward: Backward) -> list[tuple[int, int]]:
    """Returns the values without a graph that a loss combines with others, outside the function that made these."""
    scope = facts.scope(used.site)
    calls = (call for call in loss_calls(facts, backward) if call.index > used.index)
    return [
        (access.tensor, call.index)
        for call in calls
        if facts.scope(call.site) != scope and len(call.inputs) > 1
        for access in call.inputs
        if not facts.requires_grad(access.tensor, call.index - 1) and _is_float(facts, access.tensor)
    ]


def _memory(facts: TraceIndex, values: list[tuple[int, int]]) -> set[int]:
    """Returns the memory that values are parts or copies of."""
    found, seen, waiting = set[int](), set[int](), list(values)
    for number, before in waiting:
        found |= facts.storages_of(number)
        for call in facts.producers(number, before)[:1]:
            if op_name(call) in _PARTS and call.index not in seen and len(seen) < _MAX_CALLS:
                seen.add(call.index)
                sources = call.inputs[:1] if op_name(call) in _FIRST_ONLY else call.inputs
                waiting += [(access.tensor, call.index) for access in sources]
    return found


def _above(facts: TraceIndex, values: list[tuple[int, int]]) -> set[int]:
    """Returns the memory of all values that others are computed from."""
    calls = (call for number, before in values for _, call in islice(ancestry(facts, number, before), _MAX_CALLS))
    numbers = {access.tensor for call in calls for access in call.inputs}
    return {storage for each in numbers if _is_float(facts, each) for storage in facts.storages_of(each)}


def _is_float(facts: TraceIndex, number: int) -> bool:
    """Returns whether a tensor has values that are no indices: one permutation may choose rows of all data."""
    return facts.tensor(number).dtype.startswith(("float", "bfloat"))
