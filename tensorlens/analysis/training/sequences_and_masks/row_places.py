"""Finds rows of a table that are looked up by the place of each sample in its batch.

The source writes this as `table[: x.size(0)]`, or as an embedding of `arange(len(x))`, with a dimension of 1 for the
time. A place has no meaning where the samples of a batch are drawn at random.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of, words_of_last
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.sequences_and_masks.padding_signs import REPEATING
from tensorlens.analysis.training.triangles import SAME
from tensorlens.records.model import Call

_MOVED = frozenset("unsqueeze view reshape getitem to contiguous dropout mul rmul".split())  # keep all items
_EXPANDED = frozenset("expand expand_as repeat".split())
_SAME_ROWS = frozenset("embedding dropout layer_norm contiguous linear relu gelu mul rmul to float div truediv".split())
_TAKING = frozenset(("getitem", "index_select"))
_COMPUTED = frozenset(  # what sines of a range are computed by
    "arange zeros empty unsqueeze view reshape getitem to float contiguous mul rmul div truediv rtruediv neg exp pow "
    "rpow log sin cos cat stack flatten outer einsum setitem transpose squeeze repeat_interleave floordiv".split()
)
_POSITIONS = frozenset("pe pos position positions positional".split())
_OWNERS = frozenset(  # what has a position: `position_of_player`
    "of per for by player players agent agents node nodes sensor sensors station stations team teams role roles user "
    "users slot slots channel channels frame frames member members joint joints object objects".split()
)
_DRAWS = frozenset(("randperm", "randint", "multinomial"))
_SORTING = frozenset("argsort sort msort topk unique".split())
_FROM_OUTSIDE = frozenset("tensor as_tensor asarray from_numpy".split())  # of values that were not traced
_MAX_CALLS, _MAX_COMPUTED = 40, 60


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """A look-up by the places of rows, and the table; or what is computed from the places, twice."""

    taken: Call
    table: int
    counted: Call | None  # the range of places, unless a slice takes the rows


def row_places(facts: TraceIndex, number: int, before: int, batch: tuple[int, ...]) -> RowPlaces | None:
    """Returns the look-up by which a tensor has one row of a table for each row of a batch (n, time, width), the same
    at all times. The table has more rows than the batch."""
    is_column = False
    for _ in range(_MAX_CALLS):
        shape, made = facts.tensor(number).shape, next(iter(facts.producers(number, before)), None)
        is_column |= shape == (batch[0], 1, batch[2])
        if made is None or not made.inputs or shape[:1] != batch[:1]:
            return None
        found, is_of_column = _looked_up(facts, made, batch[0])
        if found is not None:
            table = facts.tensor(found.table).shape
            is_table = len(table) == 2 or (len(table) == 3 and table[1] == 1)
            return found if is_table and table[0] > batch[0] and (is_column or is_of_column) else None
        if is_column and _is_computed(facts, number, before, batch[:1]):
            return RowPlaces(made, number, made)
        rows = next((a.tensor for a in made.inputs if facts.tensor(a.tensor).shape[:1] == batch[:1]), None)
        is_whole = rows is not None and prod(facts.tensor(rows).shape) == prod(shape)
        if rows is None or not (op_name(made) in _EXPANDED or (op_name(made) in _MOVED and is_whole)):
            return None
        number, before = rows, made.index
    return None


def _looked_up(facts: TraceIndex, made: Call, rows: int) -> tuple[RowPlaces | None, bool]:
    """Returns what a call looks up, if it does so by the places of rows, and whether their range is a column."""
    name = op_name(made)
    if name in ("getitem", "narrow") and len(made.inputs) == 1 and _is_of_first(facts, made):
        return RowPlaces(made, made.inputs[0].tensor, None), False
    if len(made.inputs) != 2 or not (name == "embedding" or name in _TAKING):
        return None, False
    (ids, table) = made.inputs if name == "embedding" else made.inputs[::-1]
    number, before, is_column = ids.tensor, made.index, False
    for _ in range(_MAX_CALLS):
        is_column |= facts.tensor(number).shape == (rows, 1)
        counted = next(iter(facts.producers(number, before)), None)
        if counted is None or op_name(counted) not in SAME | REPEATING or not counted.inputs:
            break
        number, before = counted.inputs[0].tensor, counted.index
    else:
        return None, False
    if counted is None or op_name(counted) != "arange" or facts.tensor(number).shape != (rows,):
        return None, False
    return RowPlaces(made, table.tensor, counted), is_column


def _is_computed(facts: TraceIndex, number: int, before: int, rows: tuple[int, ...]) -> bool:
    """Returns whether a tensor has the sines of a range of rows, and is computed from nothing else but constants."""
    made = [call for _, call in ancestry(facts, number, before, _MAX_COMPUTED)]
    names = {op_name(call) for call in made}
    is_of_rows = any(op_name(call) == "arange" and facts.tensor(call.outputs[0].tensor).shape == rows for call in made)
    return is_of_rows and len(made) < _MAX_COMPUTED and names <= _COMPUTED and bool(names & {"sin", "cos"})


def is_of_positions(facts: TraceIndex, found: RowPlaces) -> bool:
    """Returns whether a table is named as one of positions, or in a class of that name, or has sines of a range: codes
    of frames, of channels or of the members of an ensemble belong to the first dimension."""
    if found.counted is not None and (op_name(found.taken) != "embedding" or not _is_of_first(facts, found.counted)):
        return False
    name = facts.name(found.table, found.taken.index)
    if _OWNERS & set(words_of_last(name)):
        return False
    names = f"{name} {facts.trace.sites[found.taken.site].function}"
    if _POSITIONS & set(words_of(names)):
        return True
    made = {op_name(call) for _, call in ancestry(facts, found.table, found.taken.index, _MAX_CALLS)}
    return "arange" in made and bool(made & {"sin", "cos"})


def is_of_drawn_rows(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether the rows of a batch are taken from a data set in a random order, so that no place means
    anything."""
    rows = facts.tensor(number).shape[:1]
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or facts.tensor(number).shape[:1] != rows:
            return False
        if op_name(made) == "stack":
            return len(made.inputs) == rows[0] and _are_drawn(facts, made)
        if op_name(made) in _TAKING:
            shapes = [facts.tensor(access.tensor).shape for access in made.inputs]
            is_of_rows = shapes[1:] == [rows] and shapes[0][1:] == facts.tensor(number).shape[1:]
            return is_of_rows and _are_drawn(facts, made)
        if op_name(made) not in _SAME_ROWS:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _are_drawn(facts: TraceIndex, take: Call) -> bool:
    """Returns whether rows are taken in a random order: another one may be that of a sort already."""
    if op_name(take) == "stack":
        near = facts.calls_between(0, take.index)
        return any(call.site == take.site and op_name(call) in _DRAWS for call in near)
    made = [call for _, call in ancestry(facts, take.inputs[1].tensor, take.index, _MAX_CALLS)]
    is_ordered = any(op_name(call) in _SORTING or _takes_untraced(facts, call) for call in made)
    return any(op_name(call) in _DRAWS for call in made) and not is_ordered


def _takes_untraced(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call takes rows by an index of another library, which may have sorted them."""
    if op_name(call) in _FROM_OUTSIDE:
        return True
    node = facts.node_at(call.site) if op_name(call) == "getitem" and len(call.inputs) == 1 else None
    if not isinstance(node, ast.Subscript):
        return False
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    is_of_rows = facts.tensor(call.outputs[0].tensor).shape == facts.tensor(call.inputs[0].tensor).shape
    return is_of_rows and not isinstance(first, ast.Slice)


def _is_of_first(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a line takes, or counts, as many items as a tensor has rows: `[: x.size(0)]`, `arange(len(x))`,
    also by a name for that size."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    size: ast.expr | None = None
    if isinstance(node, ast.Subscript):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        size = first.upper if isinstance(first, ast.Slice) and first.lower is None and first.step is None else None
    elif isinstance(node, ast.Call) and op_name(call) == "narrow":
        is_first = len(node.args) > 2 and [ast.unparse(each) for each in node.args[-3:-1]] == ["0", "0"]
        size = node.args[-1] if is_first else None
    elif isinstance(node, ast.Call) and op_name(call) == "arange" and len(node.args) in (1, 2):
        size = node.args[-1] if len(node.args) == 1 or ast.unparse(node.args[0]) == "0" else None
    if size is None or span is None:
        return False
    if not isinstance(size, ast.Name):
        return _is_size(size)
    around = function_around(facts, span.file, span.line)
    values = [] if around is None else [_bound(each, size.id) for each in ast.walk(around)]
    bound = [each for each in values if each is not None]
    return bool(bound) and all(_is_size(each) for each in bound)


def _bound(node: ast.AST, name: str) -> ast.expr | None:
    """Returns what a statement binds a name to; for the first of the names for a shape, the item of the shape."""
    if not isinstance(node, ast.Assign):
        return None
    target = node.targets[0]
    if isinstance(target, ast.Name) and target.id == name:
        return node.value
    names = [each.id if isinstance(each, ast.Name) else "" for each in getattr(target, "elts", [])]
    if name not in names:
        return None
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(names):
        return node.value.elts[names.index(name)]
    return ast.Subscript(node.value, ast.Constant(names.index(name)), ast.Load())


def _is_size(size: ast.expr) -> bool:
    """Returns whether an expression is the size of a first dimension."""
    text = ast.unparse(size)
    return text.endswith((".size(0)", ".shape[0]", ".size()[0]")) or text.startswith("len(")
