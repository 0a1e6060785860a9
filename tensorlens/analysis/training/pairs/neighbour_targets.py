"""Finds contrastive losses that pair neighbouring rows, although `cat()` has put the two views of a batch one after the
other: the partners are then half of the rows apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.pair_tables import (
    JOINS,
    PRODUCTS,
    TURNS,
    made_by,
    rows_of,
    shape_of,
    target_calls,
)
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_XOR = frozenset(("xor", "bitwise_xor"))
_KEEPING = frozenset(
    "mul rmul div truediv clone contiguous float to masked_fill masked_fill_ fill_diagonal where sub rsub add".split()
)
_COMPARING = frozenset("mul cosine_similarity".split())
_MERGING, _REPEATS = frozenset("view reshape flatten".split()), frozenset(("repeat", "tile"))
_TAKING = frozenset("getitem index_select gather take_along_dim".split())
_MOVING = JOINS | frozenset("roll flip sort t T mT transpose permute stack view reshape".split())
_FOLDS = JOINS | frozenset("view reshape flatten stack repeat_interleave repeat".split())
_DRAWS = frozenset("randn_like rand_like randint_like bernoulli normal uniform empty_like zeros_like ones_like".split())
_MOST_CALLS, _LEAST_LOOKS = 60, 2
_MOST_ABOVE = 400


@dataclass(frozen=True, slots=True)
class NeighbourTarget:
    """A call that pairs rows 0 and 1, 2 and 3, and so on, and the call that has joined two views of these rows."""

    pairs: Call
    joined: Call
    rows: int  # of each view
    named: Call  # that has made the numbers of the partners, or a mask of them, if it is another one


def neighbour_targets(facts: TraceIndex) -> Iterator[NeighbourTarget]:
    """Yields these calls, one for each line."""
    reported = set[int]()
    for call, table in _pairing(facts):
        shape = shape_of(facts, table)
        is_square = len(shape) == 2 and shape[0] == shape[1] and shape[0] % 4 == 0
        joined = _joined(facts, table, call.index, shape) if is_square and call.site not in reported else None
        if joined is not None and are_views(facts, joined):
            reported.add(call.site)
            yield NeighbourTarget(call, joined, shape[0] // 2, _naming(facts, call))
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            rows = _paired_halves(facts, call) if call.site not in reported else None
            joined = None if rows is None else joined_rows(facts, *rows)
            if rows is not None and joined is not None and are_views(facts, joined):
                reported.add(call.site)
                size = shape_of(facts, rows[0])[0] // 2
                yield NeighbourTarget(call, joined, size, call)


def _naming(facts: TraceIndex, call: Call) -> Call:
    """Returns the call that has made what a call chooses partners by."""
    plain = [each.tensor for each in call.inputs if not facts.requires_grad(each.tensor, call.index - 1)]
    made = made_by(facts, plain[-1], call.index) if plain else None
    return call if made is None or facts.same_line(made.site, call.site) else made


def _pairing(facts: TraceIndex) -> Iterator[tuple[Call, int]]:
    """Yields the calls that take the element of a neighbour of each row, with the table: by the source, or measured."""
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) == "cross_entropy" and len(call.inputs) == 2:
                if _is_neighbour(facts, call.inputs[1].tensor, call.index):
                    yield call, call.inputs[0].tensor
    for line in by_line(facts, facts.trace.inspection.chosen_partners):
        if len(line) >= _LEAST_LOOKS and all(each.distance == 1 for _, each in line):
            call, fact = line[0]
            given = [access.tensor for access in call.inputs if facts.requires_grad(access.tensor, call.index - 1)]
            tables = [each for each in given if shape_of(facts, each) == (fact.rows, fact.rows)]
            yield from ((call, each) for each in tables[:1])


def _is_neighbour(facts: TraceIndex, target: int, before: int) -> bool:
    """Returns whether a target is `arange(n) ^ 1`."""
    made = target_calls(facts, target, before)
    flips = [call for call in made or () if op_name(call) in _XOR]
    if made is None or len(flips) != 1 or {op_name(call) for call in made} - _XOR - {"arange", "to", "long"}:
        return False
    node = facts.node_at(flips[0].site)
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [*getattr(node, "args", ())]
    return any(isinstance(part, ast.Constant) and part.value == 1 for part in parts)


def _joined(facts: TraceIndex, number: int, before: int, shape: tuple[int, ...]) -> Call | None:
    """Returns the call that has joined two parts to the rows that a table compares with themselves."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        if op_name(made) in PRODUCTS:
            rows = rows_of(facts, made)
            return None if rows is None else joined_rows(facts, rows, made.index)
        tables = [access.tensor for access in made.inputs if shape_of(facts, access.tensor) == shape]
        trained = [each for each in tables if facts.requires_grad(each, made.index - 1)]
        if op_name(made) in _MOVING - TURNS or not trained:
            return None
        number, before = trained[0], made.index
    return None


def joined_rows(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that has put two parts, as long as each other, one after the other to some rows."""
    size = shape_of(facts, number)[:1]
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        name, given = op_name(made), made.inputs[0].tensor
        half = (size[0] // 2,)
        if name in JOINS:
            parts = [shape_of(facts, access.tensor)[:1] for access in made.inputs]
            return made if parts == [half] * 2 else None
        shapes = [shape_of(facts, each) for each in (given, number)]
        if name in _REPEATS and shapes[0][:1] == half and shapes[1] == (*size, *shapes[0][1:]):
            return made
        if name in _MERGING and shapes[0][:2] == (2, *half):
            return _stack_of_two(facts, given, made.index)
        if name == "getitem" or any(shape[:1] != size for shape in shapes):
            return None
        number, before = given, made.index
    return None


def _stack_of_two(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the `torch.stack([one, two])` that a tensor is, up to operations on its elements."""
    shape = shape_of(facts, number)
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs or op_name(made) in _MOVING - {"stack"}:
            return None
        if op_name(made) == "stack":
            parts = [shape_of(facts, access.tensor) for access in made.inputs]
            return made if parts == [shape[1:]] * 2 else None
        if shape_of(facts, made.inputs[0].tensor)[:2] != shape[:2]:
            return None
        number, before = made.inputs[0].tensor, made.index
        shape = shape_of(facts, number)
    return None


def _paired_halves(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns rows, and when, of which a call compares those at even places with those at odd ones."""
    if op_name(call) not in _COMPARING or len(call.inputs) < 2:
        return None
    halves = [_half(facts, access.tensor, call.index) for access in call.inputs[:2]]
    one, other = sorted(halves, key=lambda each: each[2] if each else -1)
    is_pair = one is not None and other is not None and one[0] == other[0] and (one[2], other[2]) == (0, 1)
    return (one[0], one[1]) if one is not None and is_pair else None


def _half(facts: TraceIndex, number: int, before: int) -> tuple[int, int, int] | None:
    """Returns (rows, when, 0 or 1 for the even or the odd places of these) of what takes every second row."""
    made = made_by(facts, number, before)
    node = None if made is None else facts.node_at(made.site)
    if made is None or len(made.inputs) != 1 or op_name(made) != "getitem" or not isinstance(node, ast.Subscript):
        return None
    part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(part, ast.Slice) or part.upper is not None or written_number(facts, part.step) != 2:
        return None
    first = 0 if part.lower is None else written_number(facts, part.lower)
    return (made.inputs[0].tensor, made.index, int(first)) if first in (0, 1) else None


def are_views(facts: TraceIndex, joined: Call) -> bool:
    """Returns whether both parts were computed, row by row, from one batch."""
    if len(joined.inputs) == 1:  # `x.repeat(2, 1)`
        return not _is_folded(facts, joined.inputs[0].tensor, joined.index)
    first, second = (_batches(facts, access.tensor, joined.index) for access in joined.inputs)
    shared = first & second
    return bool(shared) and not any(_is_folded(facts, number, joined.index) for one in shared for number in one)


def _is_folded(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether rows, or the numbers of rows, may be those of pairs one after the other."""
    made = made_by(facts, number, before)
    return made is not None and op_name(made) in _FOLDS


def _batches(facts: TraceIndex, number: int, before: int) -> set[tuple[int, ...]]:
    """Returns the batches that a tensor was computed from row by row, each by its number or by what it was taken of."""
    rows, found = shape_of(facts, number)[:1], set[tuple[int, ...]]()
    waiting, seen = [(number, before)], set[int]()
    for one, limit in waiting:
        made = made_by(facts, one, limit)
        if made is None or made.index in seen or len(seen) > _MOST_ABOVE or not made.inputs:
            continue
        seen.add(made.index)
        given = [access.tensor for access in made.inputs]
        if op_name(made) in _TAKING:
            found |= {tuple(given)} if len(given) > 1 else set()
        elif op_name(made) not in _MOVING | _DRAWS:
            alike = [each for each in given[1:] if shape_of(facts, each) == shape_of(facts, one)]
            further = [*given[:1], *(alike if op_name(made) in _KEEPING else ())]
            further = [each for each in further if shape_of(facts, each)[:1] == rows]
            found |= {(each,) for each in further if not facts.tensor(each).type.endswith("Parameter")}
            waiting += [(each, made.index) for each in further]
    return found
