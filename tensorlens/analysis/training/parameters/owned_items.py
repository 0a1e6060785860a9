"""Reads the numbers of owners: which items `owner == 0` chooses, and which lines give such items another number."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_OPPOSITES = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_INVERTING = frozenset(("invert", "logical_not"))
_CASTS = frozenset("float to type type_as bool clone detach".split())
_ASSIGNING = frozenset(("setitem", "masked_fill"))
_MAX_CALLS = 20


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a memory that a comparison with a plain number chooses, as `owner == 0` does."""

    storages: frozenset[int]
    comparison: str
    number: float


def chosen_items(facts: TraceIndex, mask: int, is_kept: bool = False) -> Items | None:
    """Returns the items that a mask chooses; None: it chooses others.

    With `is_kept`, it returns those that the mask does not choose. A mask chooses the items of a number, too, if a line
    gives them this number, as `owner[dropped] = 0` does.
    """
    origin, is_opposite = _origin(facts, mask, is_kept)
    made = facts.creator(origin)
    compared = None if made is None or len(made.inputs) != 1 else _compared(facts, made)
    number = None if compared is None else written_number(facts, compared)
    if made is not None and number is not None and op_name(made) in _OPPOSITES:
        name = op_name(made)
        storages = frozenset(facts.storages_of(made.inputs[0].tensor))
        return Items(storages, _OPPOSITES[name] if is_opposite else name, number)
    for call in claims_of(facts):
        given = written_number(facts, _given(facts, call))
        if given is not None and any(
            _origin(facts, each, False) == (origin, is_opposite) for each in _masks(facts, call)
        ):
            return Items(claimed(facts, call), "eq", given)
    return None


def are_claimed(facts: TraceIndex, items: Items) -> bool:
    """Returns whether a line gives such items, or some of them, the number of a task: `owner[owner == 0] = task`."""
    return any(
        claimed(facts, call) == items.storages
        and is_by_variable(facts, call)
        and any(items in _chosen_of(facts, mask) for mask in _masks(facts, call))
        for call in claims_of(facts)
    )


def are_of_tasks(facts: TraceIndex, masks: list[int], first: int) -> bool:
    """Returns whether each mask from after event `first` is computed by a comparison with a number that may vary."""
    return all(_is_of_task(facts, mask, first) for mask in masks)


def claims_of(facts: TraceIndex) -> tuple[Call, ...]:
    """Returns the calls that give one value to the items of whole numbers that a mask chooses."""
    return _claims(facts)


def claimed(facts: TraceIndex, call: Call) -> frozenset[int]:
    """Returns the memory that a call writes to."""
    return frozenset(each for write in call.writes for each in facts.storages_of(write.tensor))


def is_by_variable(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call gives items a number that the source does not say: the number of a task, for one."""
    given = _given(facts, call)
    return given is not None and written_number(facts, given) is None


@lru_cache(maxsize=1)
def _claims(facts: TraceIndex) -> tuple[Call, ...]:
    calls = (call for call in facts.calls if op_name(call) in _ASSIGNING and not call.within and call.writes)
    return tuple(call for call in calls if _masks(facts, call) and "int" in facts.tensor(call.writes[0].tensor).dtype)


def _masks(facts: TraceIndex, call: Call) -> list[int]:
    return [access.tensor for access in call.inputs[1:] if facts.tensor(access.tensor).dtype == "bool"]


def _given(facts: TraceIndex, call: Call) -> ast.expr | None:
    """Returns the value that a call gives to items, as the source writes it."""
    if op_name(call) == "setitem":
        span = facts.span(call.site)
        statement = None if span is None else statement_around(facts, span)
        return statement.value if isinstance(statement, ast.Assign) else None
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call):
        return None
    named = [each.value for each in node.keywords if each.arg == "value"]
    return next(iter([*named, *node.args[1:]]), None)


def _origin(facts: TraceIndex, mask: int, is_opposite: bool) -> tuple[int, bool]:
    """Returns the tensor that a mask is a copy or the opposite of, and whether it is the opposite."""
    for _ in range(_MAX_CALLS):
        made = facts.creator(mask)
        if made is None or len(made.inputs) != 1 or op_name(made) not in _INVERTING | _CASTS:
            break
        mask, is_opposite = made.inputs[0].tensor, is_opposite != (op_name(made) in _INVERTING)
    return mask, is_opposite


def _compared(facts: TraceIndex, made: Call) -> ast.expr | None:
    """Returns what the source compares a tensor with, as `task` in `owner != task` and `owner.ne(task)`."""
    node = facts.node_at(made.site)
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return node.comparators[0]
    return node.args[-1] if isinstance(node, ast.Call) and node.args else None


def _chosen_of(facts: TraceIndex, mask: int) -> list[Items | None]:
    """Returns the items that a mask chooses from, as those of `owner == 0` in `(owner == 0) & large`."""
    made = facts.creator(mask)
    parts = made.inputs if made is not None and op_name(made) in ("and", "logical_and") else ()
    return [chosen_items(facts, each) for each in (mask, *(access.tensor for access in parts))]


def _is_of_task(facts: TraceIndex, mask: int, first: int) -> bool:
    waiting = [mask]
    for number in waiting:
        made = facts.creator(number)
        if made is None or made.index < first or len(waiting) > _MAX_CALLS:
            continue
        if op_name(made) in _OPPOSITES:
            compared = _compared(facts, made)
            if compared is not None and written_number(facts, compared) is None:
                return True
        waiting += [access.tensor for access in made.inputs]
    return False
