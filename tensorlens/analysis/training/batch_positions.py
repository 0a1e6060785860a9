"""Finds tables of positions that are added along the batch: a layer after it takes the first dimension as the batch.

PyTorch's tutorial keeps such a table in shape (length, 1, width), for sequences whose first dimension is time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from operator import attrgetter

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls, recorded_above
from tensorlens.analysis.training.padding_signs import is_counted
from tensorlens.analysis.training.runs_along_batch import LOSSES, RECURRENT, loss_of_rows, run_along
from tensorlens.analysis.training.turned_masks import LAYER
from tensorlens.records.model import Backward, Call

_SAME_ROWS = frozenset("dropout layer_norm contiguous linear relu gelu mul rmul".split())
_POSITIONS = frozenset("pe pos position positions positional".split())
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
        above = sorted(recorded_above(facts, backward), key=attrgetter("index"))
        for call in above:
            table = _table(facts, call) if op_name(call) in ("add", "radd") and call.site not in reported else None
            if table is None:
                continue
            batch = facts.tensor(call.outputs[0].tensor).shape
            layer = _layer(facts, call, above)
            if layer is None or _has_positions(facts, call, batch):
                continue
            is_of_rows = _is_of_ids(facts, call, batch) and _is_of_each_row(facts, backward, batch[0])
            if is_of_rows or loss_of_rows(facts, backward, *batch[:2]) is not None:
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
            if not _is_of_positions(facts, made):
                return None
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


def _is_of_positions(facts: TraceIndex, taken: Call) -> bool:
    """Returns whether a table is named as one of positions, or in a class of that name, or has sines of a range: codes
    of frames, of channels or of the members of an ensemble belong to the first dimension."""
    table = taken.inputs[0].tensor
    names = f"{facts.name(table, taken.index)} {facts.trace.sites[taken.site].function}"
    if _POSITIONS & set(words_of(names)):
        return True
    made = {op_name(call) for _, call in ancestry(facts, table, taken.index, _MAX_CALLS)}
    return "arange" in made and bool(made & {"sin", "cos"})


def _layer(facts: TraceIndex, added: Call, above: list[Call]) -> Call | None:
    """Returns the first layer that runs along a dimension of the sum, if it takes the first dimension as the batch, and
    no later one runs along that dimension."""
    batch = facts.tensor(added.outputs[0].tensor).shape
    found = None
    reached = {added.outputs[0].tensor}
    for call in above:
        if call.index <= added.index or not any(access.tensor in reached for access in call.inputs):
            continue
        reached |= {access.tensor for access in call.outputs}
        along = run_along(facts, call)
        if batch[0] in along or op_name(call).endswith("_cell"):  # a loop with a cell can run along either
            return None
        if found is None and along and not _reads(facts, call, added, batch):
            return None
        found = call if found is None and along else found
    return found


def _reads(facts: TraceIndex, layer: Call, added: Call, batch: tuple[int, ...]) -> bool:
    """Returns whether a layer gets the sum with its rows as they are, and takes its first dimension as the batch."""
    shape = facts.tensor(layer.inputs[0].tensor).shape
    number, before = layer.inputs[0].tensor, layer.index
    if op_name(layer) == LAYER:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) != "transpose" or shape != (batch[1], batch[0], batch[2]):
            return False
        number, before = made.inputs[0].tensor, made.index
    elif op_name(layer) not in RECURRENT or shape != batch:
        return False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is added:
            return True
        if made is None or op_name(made) not in _SAME_ROWS or not made.inputs:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _has_positions(facts: TraceIndex, added: Call, batch: tuple[int, ...]) -> bool:
    """Returns whether something has been added along the second dimension as well: the table is for the first."""
    along = (batch[1:], (1, *batch[1:]))
    for _, call in ancestry(facts, added.outputs[0].tensor, added.index + 1, _MAX_CALLS):
        if op_name(call) in ("add", "radd", "iadd"):
            if any(facts.tensor(access.tensor).shape in along for access in call.inputs):
                return True
        elif op_name(call) == "embedding" and is_counted(facts, call.inputs[0].tensor, call.index):
            return True
    return False


def _is_of_ids(facts: TraceIndex, added: Call, batch: tuple[int, ...]) -> bool:
    """Returns whether the table is added to the embeddings of ids in the shape of the batch."""
    number, before = added.inputs[0].tensor, added.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        if op_name(made) == "embedding":
            return facts.tensor(made.inputs[0].tensor).shape == batch[:2]
        if op_name(made) not in _SAME_ROWS:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_of_each_row(facts: TraceIndex, backward: Backward, rows: int) -> bool:
    """Returns whether each loss of a pass has as many targets for each row: those of one document are for them all."""
    targets = [
        [access.tensor for access in call.inputs[:2] if not facts.requires_grad(access.tensor, call.index - 1)]
        for call in loss_calls(facts, backward)
        if op_name(call) in LOSSES
    ]
    return bool(targets) and all(len(each) == 1 and prod(facts.tensor(each[0]).shape) % rows == 0 for each in targets)
