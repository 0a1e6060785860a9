"""Finds contrastive losses that pair neighbouring rows, although `cat()` has put the two views of a batch one after the
other: the partners are then half of the rows apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.pair_tables import JOINS, made_by, shape_of, target_calls
from tensorlens.records.model import Call

_XOR = frozenset(("xor", "bitwise_xor"))
_KEEPING = frozenset(
    "mul rmul div truediv clone contiguous float to masked_fill masked_fill_ fill_diagonal where sub rsub add".split()
)
_PRODUCTS = frozenset("matmul rmatmul mm".split())
_TAKING = frozenset("getitem index_select gather take_along_dim".split())
_MOVING = JOINS | frozenset("roll flip sort t T mT transpose permute stack view reshape".split())
_FOLDS = JOINS | frozenset("view reshape flatten stack repeat_interleave repeat".split())
_DRAWS = frozenset("randn_like rand_like randint_like bernoulli normal uniform empty_like zeros_like ones_like".split())
_MOST_CALLS = 60
_MOST_ABOVE = 400


@dataclass(frozen=True, slots=True)
class NeighbourTarget:
    """A call that pairs rows 0 and 1, 2 and 3, and so on, and the call that has joined two views of these rows."""

    pairs: Call
    joined: Call
    rows: int  # of each view


def neighbour_targets(facts: TraceIndex) -> Iterator[NeighbourTarget]:
    """Yields these calls, one for each line."""
    reported = set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if call.site in reported or op_name(call) != "cross_entropy" or len(call.inputs) != 2:
                continue
            table, target = (access.tensor for access in call.inputs)
            shape = shape_of(facts, table)
            is_square = len(shape) == 2 and shape[0] == shape[1] and shape[0] % 4 == 0
            if not is_square or not _is_neighbour(facts, target, call.index):
                continue
            joined = _joined(facts, table, call.index, shape)
            if joined is not None and _are_views(facts, joined):
                reported.add(call.site)
                yield NeighbourTarget(call, joined, shape[0] // 2)


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
        if op_name(made) in _PRODUCTS:
            break
        tables = [access.tensor for access in made.inputs if shape_of(facts, access.tensor) == shape]
        trained = [each for each in tables if facts.requires_grad(each, made.index - 1)]
        if op_name(made) not in _KEEPING or len(trained) != 1:
            return None
        number, before = trained[0], made.index
    else:
        return None
    number, before = made.inputs[0].tensor, made.index
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        if op_name(made) in JOINS:
            parts = [shape_of(facts, access.tensor)[:1] for access in made.inputs]
            return made if parts == [(shape[0] // 2,)] * 2 else None
        given, size = made.inputs[0].tensor, shape[0]
        is_moved = op_name(made) == "getitem" or shape_of(facts, given)[:1] != (size,)
        if is_moved or shape_of(facts, number)[:1] != (size,):
            return None
        number, before = given, made.index
    return None


def _are_views(facts: TraceIndex, joined: Call) -> bool:
    """Returns whether both parts were computed, row by row, from one batch."""
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
