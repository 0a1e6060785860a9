"""Finds choices of one element of each row of a table that always choose the one of the row itself.

A run has measured which elements they choose. The table compares rows with themselves, and a mask leaves out others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line
from tensorlens.analysis.training.pair_tables import PRODUCTS, made_by, rows_of, shape_of
from tensorlens.analysis.training.triangles import NOT
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_DISTANCES = frozenset("cdist pairwise_distance sub dist".split())
_LEAST_OF, _GREATEST_OF = frozenset("min amin argmin".split()), frozenset("max amax argmax topk".split())
_ROWS = frozenset(("getitem", "index_select"))
_MASKS = frozenset("masked_fill masked_fill_ where setitem".split())
_WITH_MASK = frozenset("add radd iadd sub rsub isub mul rmul imul".split())
_CASTS = NOT | frozenset("float to type double half add radd sub rsub mul rmul".split())
_AGAIN = frozenset("sub rsub isub div truediv".split())
_LEAST_LOOKS, _MOST_CALLS, _MOST_LATER, _MOST_CASTS = 2, 40, 60, 5


@dataclass(frozen=True, slots=True)
class OwnExtreme:
    """A call that chooses, the one that leaves some elements out before, and the one that compares the rows."""

    chosen: Call
    mask: Call
    compared: Call
    rows: int


@dataclass(frozen=True, slots=True)
class _Place:
    number: int
    before: int
    is_turned: bool  # so that the greatest elements are the least ones of what it was computed from
    mask: Call | None = None


def own_extremes(facts: TraceIndex) -> Iterator[OwnExtreme]:
    """Yields these, one for each line, where all rows that were looked at choose themselves.

    They have others to choose from, or the choice is that of the nearest row, which no other one can be.
    """
    for line in by_line(facts, facts.trace.inspection.chosen_own):
        call, fact = line[0]
        chosen = _chooses(facts, call)
        is_own = all(each.own == each.rows and not 0 <= 2 * each.several < each.rows for _, each in line)
        if len(line) < _LEAST_LOOKS or not is_own or chosen is None or _is_taken_off(facts, chosen):
            continue
        found = _above(facts, chosen, fact.rows, fact.several >= 0)
        if found is not None:
            yield OwnExtreme(chosen, *found, fact.rows)


def _chooses(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that has chosen elements: of rows that a line takes by an index, the one that made this."""
    if op_name(call) not in _ROWS or len(call.inputs) != 2:
        return call if call.inputs else None
    made = made_by(facts, call.inputs[1].tensor, call.index)
    return made if made is not None and made.inputs and op_name(made) in _LEAST_OF | _GREATEST_OF else None


def _above(facts: TraceIndex, chosen: Call, rows: int, has_others: bool) -> tuple[Call, Call] | None:
    """Returns the call that masks a table, and the one that compares the rows that it is a table of."""
    shape = shape_of(facts, chosen.inputs[0].tensor)
    waiting = [_Place(chosen.inputs[0].tensor, chosen.index, is_turned=False)] if shape == (rows, rows) else []
    for place in islice(waiting, _MOST_CALLS):
        made = made_by(facts, place.number, place.before)
        if made is None or not made.inputs:
            continue
        name, given = op_name(made), [access.tensor for access in made.inputs]
        if name in PRODUCTS | _DISTANCES and len(given) >= 2 and rows_of(facts, made) is not None:
            is_nearest = (op_name(chosen) in _LEAST_OF) == ((name in _DISTANCES) != place.is_turned)
            return (place.mask, made) if place.mask is not None and (has_others or is_nearest) else None
        tables = [(n, each) for n, each in enumerate(given) if shape_of(facts, each)[:2] == (rows, rows)]
        masks = [each for _, each in tables if _is_mask(facts, each, made.index)]
        is_masked = name in _MASKS or (name in _WITH_MASK and bool(masks))
        for position, each in tables:
            if each not in masks:
                is_turned = place.is_turned != _turns(facts, made, position)
                waiting.append(_Place(each, made.index, is_turned, place.mask or (made if is_masked else None)))
    return None


def _turns(facts: TraceIndex, call: Call, position: int) -> bool:
    """Returns whether a call makes greater elements of smaller ones."""
    node = facts.node_at(call.site)
    name, sides = op_name(call), [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if name in ("mul", "rmul", "div", "truediv"):
        return any((written_number(facts, each) or 0) < 0 for each in sides)
    return name in ("neg", "rsub") or (name in ("sub", "isub") and position == 1)


def _is_mask(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is true or false at its places, or a number for each of the two."""
    for _ in range(_MOST_CASTS):
        if facts.tensor(number).dtype == "bool":
            return True
        made = made_by(facts, number, before)
        if made is None or op_name(made) not in _CASTS or len(made.inputs) != 1:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_taken_off(facts: TraceIndex, chosen: Call) -> bool:
    """Returns whether a line takes what is chosen off the same table, as before a sum of exponentials."""
    known, table = {access.tensor for access in chosen.outputs}, chosen.inputs[0].tensor
    for reader in islice(facts.calls_between(chosen.index + 1), _MOST_LATER):
        read = {access.tensor for access in reader.inputs}
        if known.isdisjoint(read):
            continue
        if op_name(reader) in _AGAIN and table in read:
            return True
        if len(reader.inputs) == 1:
            known |= {access.tensor for access in reader.outputs}
    return False
