"""Finds vectors with one element for each row of a batch that broadcast along its columns, because there are as many.

(n,) against (n, n) pairs the elements with the last dimension. A vector that is looked up with an index that is drawn
for each pass, as the noise of a diffusion model with its steps `t`, belongs to rows where another line gives `t` a
further dimension, or looks up an embedding for each of its elements. Random numbers, as those of a mixup, belong to the
rows where another line combines each with the target of one row. A vector that was taken from the data with the rows of
the table, by a loader or with one index, has one element for each of them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.row_starts import Start, row_starts
from tensorlens.analysis.training.rows_and_dimensions.batch_pairs import is_of_two_batches
from tensorlens.analysis.training.rows_and_dimensions.sorted_rows import are_parts, are_together
from tensorlens.analysis.training.runs_along_batch import LOSSES
from tensorlens.records.model import Call

_COMBINING = frozenset(
    "mul rmul imul add radd iadd sub rsub isub div truediv rtruediv true_divide lerp where addcmul".split()
)
_WEIGHING = frozenset("binary_cross_entropy binary_cross_entropy_with_logits matmul mv".split())  # by number of the row
_PLACING = frozenset("unsqueeze view reshape getitem embedding".split())
_DRAWING = frozenset(("randint", "randint_like", "multinomial"))
_RANDOM = frozenset(
    "rand randn rand_like randn_like uniform normal bernoulli poisson exponential sample_dirichlet "
    "standard_gamma".split()
)
_LOOKING_UP = frozenset(("getitem", "gather", "index_select", "take"))
_PAIRING = frozenset("matmul mm bmm einsum cdist baddbmm addmm eye diag outer".split())
_MAX_STEPS = 4  # from a table back
_MAX_CALLS = 12
_MIN_PASSES = 3
_MOST_INPUTS = 3


@dataclass(frozen=True, slots=True)
class RowVector:
    """A call that broadcasts a vector along rows whose number is that of its elements."""

    call: Call
    vector: int
    table: int
    placed: Call  # has an element of the vector, or of what it is computed from, for each row
    of: int | None  # the input of `placed`; None if it takes the elements from the data


def row_vectors(facts: TraceIndex) -> Iterator[RowVector]:
    """Yields these calls, one for each line, if several passes have one."""
    found: dict[int, list[RowVector]] = defaultdict(list)
    start = 0
    for backward in examined_passes(facts):
        since, start = start, backward.index
        calls = list(facts.calls_between(since, backward.started))
        squares = [pair for call in calls if (pair := _square(facts, call)) is not None]
        placed = _placed(facts, calls) if squares else {}
        seen = set[int]()
        for call, vector, table in squares:
            if call.site in seen or _is_of_pairs(facts, table, call.index):
                continue
            own = _sources(facts, vector, call.index) if _is_looked_up(facts, vector, call.index, since) else ()
            place: tuple[Call, int | None] | None = next(
                ((placed[number], number) for number in own if number in placed), None
            )
            if place is None and _is_random(facts, vector, call.index, since):
                place = _given_to_rows(facts, calls, call, vector, table)
            if place is None:
                place = _taken_with_rows(facts, call, vector, table, since)
            if place is not None and not _is_of_columns(facts, vector, table, call.index):
                seen.add(call.site)
                found[call.site].append(RowVector(call, vector, table, *place))
    yield from (each[-1] for each in found.values() if len(each) >= _MIN_PASSES)


def _square(facts: TraceIndex, call: Call) -> tuple[Call, int, int] | None:
    """Returns a call that combines a vector with a table that has as many rows as columns, and both."""
    if op_name(call) not in _COMBINING | _WEIGHING or not 2 <= len(call.inputs) <= _MOST_INPUTS or call.within:
        return None
    vector, *_, table = sorted((a.tensor for a in call.inputs), key=lambda number: len(facts.tensor(number).shape))
    size, shape = facts.tensor(vector).shape, facts.tensor(table).shape
    is_square = len(size) == 1 < len(shape) and size[0] > 1 and shape[0] == shape[-1] == size[0]
    return (call, vector, table) if is_square else None


def _placed(facts: TraceIndex, calls: list[Call]) -> dict[int, Call]:
    """Maps vectors to the calls that use each of their elements, or of what these give, for a row."""
    placed: dict[int, Call] = {}
    for call in calls:
        name = op_name(call)
        if name in _PLACING and call.inputs and call.outputs:
            number = call.inputs[0].tensor
            size, shape = facts.tensor(number).shape, facts.tensor(call.outputs[0].tensor).shape
            is_column = len(size) == 1 and shape[:1] == size and all(each == 1 for each in shape[1:])
            is_looked_up = name == "embedding" and len(size) == 1 and shape[:1] == size
            if len(shape) > 1 and (is_looked_up or (is_column and name != "embedding")):
                for each in (number, *_sources(facts, number, call.index)):
                    placed.setdefault(each, call)
    return placed


def _is_looked_up(facts: TraceIndex, vector: int, before: int, since: int) -> bool:
    """Returns whether a vector has items of a table, at places that were drawn since an event, and nothing of it is
    trained."""
    above = [made for _, made in islice(ancestry(facts, vector, before), _MAX_CALLS)]
    inputs = [facts.tensor(access.tensor) for made in above for access in made.inputs]
    is_trained = any(each.type == "Parameter" for each in inputs)
    is_drawn = any(op_name(made) in _DRAWING and made.index > since for made in above)
    return is_drawn and not is_trained and any(op_name(made) in _LOOKING_UP for made in above)


def _is_random(facts: TraceIndex, vector: int, before: int, since: int) -> bool:
    """Returns whether a vector has random numbers that were drawn since an event, and nothing of it is trained."""
    above = [made for _, made in islice(ancestry(facts, vector, before), _MAX_CALLS)]
    is_trained = any(facts.requires_grad(access.tensor, made.index) for made in above for access in made.inputs)
    return not is_trained and any(op_name(made) in _RANDOM and made.index > since for made in above)


def _given_to_rows(
    facts: TraceIndex, calls: list[Call], square: Call, vector: int, table: int
) -> tuple[Call, int] | None:
    """Returns a call that combines each element of a vector, or of what it is computed from, with a value, a result or
    a loss of one row of the table, and the vector: both were taken from a data set together."""
    rows = facts.tensor(vector).shape
    tables = [a.tensor for a in square.inputs if facts.tensor(a.tensor).shape == facts.tensor(table).shape]
    starts = [start for each in tables for start in _taken(facts, each, square.index, rows)]
    own = {vector, *_sources(facts, vector, square.index)}
    for call in calls if starts else ():
        if op_name(call) not in _COMBINING or call.within:
            continue
        for number, is_column in ((a.tensor, facts.tensor(a.tensor).shape == (*rows, 1)) for a in call.inputs):
            flat = _column_of(facts, number, call.index) if is_column else number
            if facts.tensor(flat).shape != rows or not own & {flat, *_sources(facts, flat, call.index)}:
                continue
            others = [a.tensor for a in call.inputs if a.tensor != number]
            others = [each for each in others if (len(facts.tensor(each).shape) > 1) == is_column]
            found = [start for each in others for start in _taken(facts, each, call.index, rows)]
            if any(are_together(facts, one, other) for one in starts for other in found):
                return call, flat
    return None


def _taken_with_rows(facts: TraceIndex, square: Call, vector: int, table: int, since: int) -> tuple[Call, None] | None:
    """Returns the call that takes the elements of a vector from the data for the samples whose values are the rows of a
    table: its columns are in the data too, so that they are no samples."""
    shape = facts.tensor(table).shape
    tables = [a.tensor for a in square.inputs if facts.tensor(a.tensor).shape == shape]
    known = [start for each in tables for start in _of_table(facts, each, square.index)]
    rows = [start for start in known if facts.tensor(start.tensor).shape == shape and _is_of_more(facts, start, since)]
    own = row_starts(facts, vector, square.index) if rows else []
    are_of_rows = (
        any(are_together(facts, one, other) or are_parts(facts, one, other) for other in rows) for one in own
    )
    if own and own[0].call is not None and all(are_of_rows):
        return own[0].call, None
    return None


def _of_table(facts: TraceIndex, table: int, before: int) -> list[Start]:
    """Returns the calls that take the rows of a table, or of the targets of the loss that it is."""
    starts = row_starts(facts, table, before)
    made = [start.call for start in starts if start.call is not None and op_name(start.call) in LOSSES]
    targets = [(call.inputs[1].tensor, call.index) for call in made if len(call.inputs) > 1]
    return starts + [start for number, index in targets for start in row_starts(facts, number, index)]


def _is_of_more(facts: TraceIndex, start: Start, since: int) -> bool:
    """Returns whether the rows are some of those of the data, each as it is there, with all its columns."""
    call, shape = start.call, facts.tensor(start.tensor).shape
    if call is None or not call.inputs:
        return False
    if start.is_collated:
        item = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
        data = None if item is None or op_name(item) != "getitem" else item.inputs[0].tensor
    else:
        data = call.inputs[0].tensor if op_name(call) in ("getitem", "index_select") else None
    if data is None or any(made.index > since for made in facts.producers(data, call.index)):
        return False  # a part of the columns may have been taken
    size = facts.tensor(data).shape
    return len(size) == len(shape) and size[0] > shape[0] and size[1:] == shape[1:]


def _column_of(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the vector that a column is made of."""
    made = next(iter(facts.producers(number, before)), None)
    return made.inputs[0].tensor if made is not None and op_name(made) in _PLACING and made.inputs else number


def _taken(facts: TraceIndex, number: int, before: int, rows: tuple[int, ...]) -> list[Start]:
    """Returns the calls that take the rows of a value, or of the targets of a loss for each row, out of more rows, or
    put them together."""
    made = next(iter(facts.producers(number, before)), None)
    if made is not None and op_name(made) in LOSSES and len(made.inputs) > 1:
        number, before = made.inputs[1].tensor, made.index
    if facts.tensor(number).shape[:1] != rows:
        return []
    found: list[Start] = []
    for start in row_starts(facts, number, before):
        call = start.call
        if call is not None and start.is_taken:
            shapes = [facts.tensor(access.tensor).shape for access in (*call.inputs[:2], *call.outputs[:1])]
            if shapes[1] == rows < shapes[0][:1] and shapes[0][1:] == shapes[2][1:]:
                found.append(start)
        elif call is not None and start.is_collated and len(call.inputs) == rows[0]:
            found.append(start)
    return found


def _is_of_pairs(facts: TraceIndex, table: int, before: int) -> bool:
    """Returns whether a table has a value for each pair of rows, or is a parameter."""
    above = [made for _, made in islice(ancestry(facts, table, before), _MAX_STEPS)]
    is_paired = any(op_name(made) in _PAIRING or _multiplies(facts, made) for made in above)
    return facts.tensor(table).type == "Parameter" or is_paired or is_of_two_batches(facts, table, before)


def _multiplies(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call is `linear()` with the rows of another batch in place of a weight."""
    given = call.inputs[1:2] if op_name(call) == "linear" else ()
    return any(facts.tensor(each.tensor).type != "Parameter" for each in given)


def _sources(facts: TraceIndex, vector: int, before: int) -> Iterator[int]:
    """Yields the vectors of the same size that a vector is computed from, element by element: the way to each leads
    over nothing that has more elements, as the input of a layer."""
    size = facts.tensor(vector).shape
    waiting, seen = [(vector, before)], {vector}
    for number, limit in islice(waiting, _MAX_CALLS):
        for made in facts.producers(number, limit):
            same = [each.tensor for each in made.inputs if prod(facts.tensor(each.tensor).shape) == prod(size)]
            if op_name(made) in _PAIRING or op_name(made) in ("linear", "mv"):
                continue
            yield from (each for each in same if facts.tensor(each).shape == size)
            waiting += [(each, made.index) for each in same if each not in seen]
            seen |= set(same)


def _is_of_columns(facts: TraceIndex, vector: int, table: int, before: int) -> bool:
    """Returns whether the columns of a table were taken with an index that a vector was taken with too."""
    own = {vector, *_sources(facts, vector, before)}
    for _, made in islice(ancestry(facts, table, before), _MAX_CALLS):
        if op_name(made) in _LOOKING_UP and own & {access.tensor for access in made.inputs[1:]}:
            node = facts.node_at(made.site)
            if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Tuple):
                return True
    return False
