"""Finds out whether the masks of all runs of a line choose the same elements, or more of them with each phase."""

from __future__ import annotations

import ast
from collections import Counter
from functools import lru_cache

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Call

_ORDERING = frozenset("lt gt le ge and or invert logical_not logical_and logical_or rsub".split())
_EQUAL = frozenset(("eq", "ne"))
_KEEPING = (RESHAPING | _ORDERING) - {"getitem"}  # an item may be another one each time
_FILLING = frozenset("zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full".split())
_MAX_CALLS = 20
_MOST_WRITTEN = 0.1  # of the runs: a mask of tasks is changed between these


def fixed_roots(training: MeasuredTraining, masks: list[int], runs: list[Call]) -> frozenset[int]:
    """Returns the tensors that masks are computed from, by comparisons alone; none if they may choose other elements.

    The tensors are the same for each run after the first, were there before that one, and hardly change. None of them
    is a parameter. Masks without a True, or without a False, choose nothing.
    """
    facts, first = training.facts, runs[0].index
    found = {roots_of(facts, mask, first) for mask in masks[1:]}
    roots = next(iter(found)) if len(found) == 1 else frozenset[int]()
    if any(training.row(root) is not None for root in roots) or all(_is_uniform(facts, root) for root in roots):
        return frozenset()
    between = Counter(
        storage
        for call in facts.calls_between(first, runs[-1].index)
        for storage in {each for write in call.writes for each in facts.storages_of(write.tensor)}
    )
    if any(_is_owned(facts, mask, first) for mask in masks) and not _are_claimed(facts, roots, runs):
        return frozenset()
    is_kept = all(between[each] <= _MOST_WRITTEN * len(runs) for root in roots for each in facts.storages_of(root))
    return roots if is_kept else frozenset()


def roots_of(facts: TraceIndex, mask: int, first: int) -> frozenset[int]:
    """Returns the tensors from before event `first` that a mask is computed from; none if it is not by comparisons."""
    roots, waiting = set[int](), [mask]
    for number in waiting:
        made = facts.creator(number)
        if made is None or made.index < first:
            roots.add(number)
        elif op_name(made) not in _KEEPING | _EQUAL or not made.inputs or len(waiting) > _MAX_CALLS:
            return frozenset()
        else:
            waiting += [access.tensor for access in made.inputs]
    return frozenset(roots)


def _is_owned(facts: TraceIndex, mask: int, first: int) -> bool:
    """Returns whether a mask from after event `first` is computed by `==` or `!=`, as `owner != task` is."""
    waiting = [mask]
    for number in waiting:
        made = facts.creator(number)
        if made is not None and made.index >= first and len(waiting) <= _MAX_CALLS:
            if op_name(made) in _EQUAL:
                return True
            waiting += [access.tensor for access in made.inputs]
    return False


def _are_claimed(facts: TraceIndex, roots: frozenset[int], runs: list[Call]) -> bool:
    """Returns whether lines set chosen items of whole numbers between the runs, as `owner[free & large] = task`.

    Numbers that stay may be those of blocks that are trained in turn.
    """
    storages = {each for root in roots for each in facts.storages_of(root)}
    claims = set[int]()
    for call in facts.calls_between(runs[0].index, runs[-1].index):
        if op_name(call) == "setitem" and any(facts.tensor(each.tensor).dtype == "bool" for each in call.inputs[1:]):
            claims |= {each for write in call.writes for each in facts.storages_of(write.tensor)}
    is_whole = all("int" in facts.tensor(root).dtype for root in roots)
    return is_whole and storages <= claims


def same_items(facts: TraceIndex, mask: int) -> tuple[frozenset[int], str, str] | None:
    """Returns the memory, the comparison and the plain number of a mask such as `owner == 0`; None: it is another."""
    made = facts.creator(mask)
    span = None if made is None else facts.span(made.site)
    node = None if span is None else facts.names.syntax.node(span)
    if made is None or len(made.inputs) != 1 or not isinstance(node, ast.Compare) or len(node.comparators) != 1:
        return None
    number = node.comparators[0]
    if not isinstance(number, ast.Constant):
        return None
    return frozenset(facts.storages_of(made.inputs[0].tensor)), op_name(made), str(number.value)


def _is_uniform(facts: TraceIndex, number: int) -> bool:
    """Returns whether a tensor has the same value in each element: it is filled, and nothing writes to it."""
    for _ in range(_MAX_CALLS):
        made = facts.creator(number)
        if made is None or facts.storages_of(number) & _written(facts):
            return False
        if op_name(made) in _FILLING:
            return True
        if op_name(made) not in _KEEPING or len(made.inputs) != 1:
            return False
        number = made.inputs[0].tensor
    return False


@lru_cache(maxsize=1)
def _written(facts: TraceIndex) -> frozenset[int]:
    numbers = {write.tensor for call in facts.calls for write in call.writes}
    return frozenset(storage for number in numbers for storage in facts.storages_of(number))
