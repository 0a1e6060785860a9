"""Finds tables of positions that are added along the batch: a layer after it takes the first dimension as the batch.

PyTorch's tutorial keeps such a table in shape (length, 1, width), for sequences whose first dimension is time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.runs_along_batch import RECURRENT
from tensorlens.analysis.training.turned_masks import LAYER
from tensorlens.records.model import Call

_MAX_CALLS = 40


@dataclass(frozen=True, slots=True)
class BatchPositions:
    """A sum of a batch and the first rows of a table, and the layer that takes the first dimension as the batch."""

    added: Call
    table: tuple[int, ...]  # its shape
    batch: tuple[int, ...]
    layer: Call


def batch_positions(facts: TraceIndex) -> Iterator[BatchPositions]:
    """Yields these sums, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for call in above:
            table = _table(facts, call) if op_name(call) in ("add", "radd") and call.site not in reported else None
            if table is None:
                continue
            batch = facts.tensor(call.outputs[0].tensor).shape
            layer = next((each for each in above if each.index > call.index and _reads(facts, each, call, batch)), None)
            if layer is not None:
                reported.add(call.site)
                yield BatchPositions(call, table, batch, layer)


def _table(facts: TraceIndex, call: Call) -> tuple[int, ...] | None:
    """Returns the shape of a table (length, 1, width) whose first rows are added to (n, time, width), if a line takes
    `table[: x.size(0)]` of it."""
    if len(call.inputs) != 2 or not call.outputs:
        return None
    batch = facts.tensor(call.outputs[0].tensor).shape
    for access in call.inputs:
        shape, made = facts.tensor(access.tensor).shape, next(iter(facts.producers(access.tensor, call.index)), None)
        if len(batch) != 3 or shape != (batch[0], 1, batch[2]) or 1 in batch[:2] or batch[0] == batch[1]:
            continue
        if made is not None and op_name(made) == "getitem" and made.inputs and _is_of_size(facts, made):
            table = facts.tensor(made.inputs[0].tensor).shape
            if len(table) == 3 and table[1] == 1 and table[0] > batch[0]:
                return table
    return None


def _is_of_size(facts: TraceIndex, taken: Call) -> bool:
    """Returns whether a line takes as many first items as a tensor has: `[: x.size(0)]`, `x.shape[0]` or `len(x)`."""
    span = facts.span(taken.site)
    node = None if span is None else facts.names.syntax.node(span)
    upper = node.slice.upper if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) else None
    text = "" if upper is None else ast.unparse(upper)
    return text.endswith((".size(0)", ".shape[0]")) or text.startswith("len(")


def _reads(facts: TraceIndex, layer: Call, added: Call, batch: tuple[int, ...]) -> bool:
    """Returns whether a layer reads the sum and takes its first dimension as the batch."""
    shape = facts.tensor(layer.inputs[0].tensor).shape if layer.inputs else ()
    if op_name(layer) == LAYER:
        made = next(iter(facts.producers(layer.inputs[0].tensor, layer.index)), None)
        is_first = made is not None and op_name(made) == "transpose" and shape == (batch[1], batch[0], batch[2])
    elif op_name(layer) in RECURRENT and len(layer.outputs) > 1:
        states = facts.tensor(layer.outputs[1].tensor).shape
        is_first = shape == batch and len(states) == 3 and states[1] == batch[0]
    else:
        return False
    behind = (call for _, call in ancestry(facts, layer.inputs[0].tensor, layer.index, _MAX_CALLS))
    return is_first and any(call.index == added.index for call in behind)
