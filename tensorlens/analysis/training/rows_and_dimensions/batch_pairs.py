"""Decides whether a table has a value for each pair of rows of two batches, as distances have."""

from __future__ import annotations

from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_SPREADING = frozenset("expand expand_as repeat tile broadcast_to".split())
_RANGES = frozenset("arange linspace logspace range".split())
_TAKING = frozenset("getitem embedding index_select gather take".split())
_MAX_CALLS = 24


def is_of_two_batches(facts: TraceIndex, table: int, before: int) -> bool:
    """Returns whether the first two dimensions of a table come from two batches that one call broadcasts against each
    other: the way to the call leads over tensors with both dimensions."""
    rows = facts.tensor(table).shape[0]
    waiting, seen = [(table, before)], {table}
    for number, limit in islice(waiting, _MAX_CALLS):
        for made in facts.producers(number, limit):
            shapes = [facts.tensor(access.tensor).shape for access in made.inputs]
            if _is_spread(facts, made, shapes, rows):
                return True
            if _is_broadcast(shapes, rows):
                given = zip(made.inputs, shapes, strict=True)
                columns = [each.tensor for each, shape in given if shape[:2] != (rows, 1)]
                return not any(_is_range(facts, each, made.index) for each in columns)
            for access, shape in zip(made.inputs, shapes, strict=True):
                is_pair = shape[:2] == (rows, rows) and (len(shape) > 2 or op_name(made) != "linear")
                if is_pair and access.tensor not in seen:
                    waiting.append((access.tensor, made.index))
                    seen.add(access.tensor)
    return False


def _is_broadcast(shapes: list[tuple[int, ...]], rows: int) -> bool:
    """Returns whether one shape has rows where another one has a single place, and the other way round in the
    dimension that follows."""
    most = max((len(shape) for shape in shapes), default=0)
    starts = [((1,) * (most - len(shape)) + tuple(shape))[:2] for shape in shapes]
    return (rows, 1) in starts and (1, rows) in starts


def _is_range(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor has the places of the columns, as a grid of times has, and so no samples."""
    above = [call for _, call in islice(ancestry(facts, number, before), _MAX_CALLS)]
    is_taken = any(op_name(call) in _TAKING and len(call.inputs) > 1 for call in above)
    return any(op_name(call) in _RANGES for call in above) and not is_taken


def _is_spread(facts: TraceIndex, call: Call, shapes: list[tuple[int, ...]], rows: int) -> bool:
    """Returns whether a call repeats each row, or a batch, once for each row, or folds a list of all pairs."""
    made = [facts.tensor(access.tensor).shape for access in call.outputs]
    if not shapes or not made or made[0][:2] != (rows, rows):
        return False
    if op_name(call) in _SPREADING:
        return shapes[0][:2] in ((rows, 1), (1, rows)) or len(shapes[0]) < len(made[0])
    return op_name(call) in ("view", "reshape", "unflatten") and shapes[0][:1] == (rows * rows,)
