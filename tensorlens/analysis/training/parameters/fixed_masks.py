"""Finds out whether the masks of all runs of a line choose the same elements, or more of them with each phase."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.owned_items import claimed, claims_of, is_by_variable
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
    facts = training.facts
    first = begin_of(facts, masks, runs)
    found = {roots_of(facts, mask, first) for mask in masks[1:]}
    roots = next(iter(found)) if len(found) == 1 else frozenset[int]()
    if any(training.row(root) is not None for root in roots) or all(_is_uniform(facts, root) for root in roots):
        return frozenset()
    between = Counter(
        storage
        for call in facts.calls_between(first, runs[-1].index)
        for storage in {each for write in call.writes for each in facts.storages_of(write.tensor)}
    )
    is_by_phases = first < runs[0].index
    is_owned = is_by_phases or any(_is_owned(facts, mask, first) for mask in masks)
    if is_owned and not _are_claimed(facts, roots, runs):
        return frozenset()
    is_kept = all(between[each] <= _MOST_WRITTEN * len(runs) for root in roots for each in facts.storages_of(root))
    return roots if is_kept else frozenset()


def begin_of(facts: TraceIndex, masks: list[int], runs: list[Call]) -> int:
    """Returns the event after which the masks of the runs are computed.

    It is the first run, where each run has a mask of its own. Where each phase of runs has one, as
    `frozen = owner != task` before a loop, it is the beginning of the first of these.
    """
    first, changes = runs[0].index, 0
    for (mask, run), following in zip(zip(masks, runs, strict=True), masks[1:], strict=False):
        made = facts.creator(following)
        if following != mask and (made is None or made.index < run.index):
            return first
        changes += following != mask
    if not 0 < changes < len(masks) - 1:
        return first
    return _earliest(facts, masks[0], first)


def _earliest(facts: TraceIndex, mask: int, first: int) -> int:
    """Returns the event of the first comparison that a mask is computed by."""
    waiting = [mask]
    for number in waiting:
        made = facts.creator(number)
        if made is not None and op_name(made) in _ORDERING | _EQUAL and len(waiting) <= _MAX_CALLS:
            first = min(first, made.index)
            waiting += [access.tensor for access in made.inputs]
    return first


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

    Numbers that stay may be those of blocks that are trained in turn, and a number that the source says, as in
    `alive[grown] = 1`, is that of no task.
    """
    storages = {each for root in roots for each in facts.storages_of(root)}
    calls = [call for call in claims_of(facts) if runs[0].index < call.index < runs[-1].index]
    by_tasks = {each for call in calls if is_by_variable(facts, call) for each in claimed(facts, call)}
    is_whole = all("int" in facts.tensor(root).dtype for root in roots)
    return is_whole and storages <= by_tasks


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
