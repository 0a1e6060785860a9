"""Finds tables of positions that are added along the batch: a layer after it takes the first dimension as the batch.

PyTorch's tutorial keeps such a table in shape (length, 1, width), for sequences whose first dimension is time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from operator import attrgetter

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls, recorded_above
from tensorlens.analysis.training.runs_along_batch import LOSSES, RECURRENT, loss_of_rows, run_along
from tensorlens.analysis.training.sequences_and_masks.padding_signs import is_counted
from tensorlens.analysis.training.sequences_and_masks.row_places import (
    RowPlaces,
    is_of_drawn_rows,
    is_of_positions,
    row_places,
)
from tensorlens.analysis.training.sequences_and_masks.turned_masks import DOT, LAYER
from tensorlens.records.model import Backward, Call

_SAME_ROWS = frozenset("dropout layer_norm contiguous linear relu gelu mul rmul".split())
_ADDING = frozenset(("add", "radd", "iadd"))
_ATTENDING = frozenset(("softmax", DOT))
_IN_ATTENTION = _SAME_ROWS | frozenset(  # between a batch and the scores of attention that is written out
    "add radd sub div truediv neg cat masked_fill where float to view reshape unflatten flatten permute transpose "
    "unbind chunk split getitem matmul bmm einsum".split()
)
_PRODUCTS = frozenset(("matmul", "bmm", "einsum"))
_TURNS = frozenset("transpose permute swapaxes movedim".split())
_MAX_CALLS = 40
_MAX_SIZES = 2  # whole and last batches


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
            placed = _places(facts, call) if op_name(call) in _ADDING and call.site not in reported else None
            if placed is None or not _is_along_batch(facts, call, *placed):
                continue
            (found, other), batch = placed, facts.tensor(call.outputs[0].tensor).shape
            layer = _layer(facts, call, above)
            if layer is None or _is_of_sequences(facts, call) or _has_positions(facts, call, found.taken, batch):
                continue
            is_of_rows = _is_of_ids(facts, call, other, batch) and _is_of_each_row(facts, backward, batch[0])
            if is_of_rows or loss_of_rows(facts, backward, *batch[:2]) is not None:
                reported.add(call.site)
                yield BatchPositions(call, facts.tensor(found.table).shape, batch, layer)


def _places(facts: TraceIndex, call: Call) -> tuple[RowPlaces, int] | None:
    """Returns the look-up by the places of rows that is added to (n, time, width), and what it is added to."""
    if len(call.inputs) != 2 or not call.outputs:
        return None
    batch = facts.tensor(call.outputs[0].tensor).shape
    if len(batch) != 3 or 1 in batch[:2] or batch[0] == batch[1]:
        return None
    for access, other in (call.inputs[::-1], call.inputs):
        if facts.tensor(other.tensor).shape == batch:
            found = row_places(facts, access.tensor, call.index, batch)
            if found is not None:
                return found, other.tensor
    return None


def _is_along_batch(facts: TraceIndex, call: Call, found: RowPlaces, other: int) -> bool:
    """Returns whether a look-up is one of positions, or has a row for each place of samples that are drawn."""
    if is_of_positions(facts, found):
        return True
    return found.counted is not None and is_of_drawn_rows(facts, other, call.index)


def _is_of_sequences(facts: TraceIndex, added: Call) -> bool:
    """Returns whether a line gets several first sizes in training, as the sentences of a document or the frames of a
    video: only the last batch of a data set has another size than the others."""
    runs = ((call.outputs[0].tensor, call.index) for call in facts.calls if call.site == added.site and call.outputs)
    sizes = {facts.tensor(number).shape[:1] for number, at in runs if facts.requires_grad(number, at)}
    return len(sizes) > _MAX_SIZES


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
    if op_name(layer) in _ATTENDING:
        return _attends(facts, layer, added, batch)
    if op_name(layer) == "conv1d":
        made = next(iter(facts.producers(number, before)), None)
        is_turned = made is not None and op_name(made) in _TURNS and facts.tensor(made.inputs[0].tensor).shape == batch
        if made is None or not is_turned or shape != (batch[0], batch[2], batch[1]) or batch[1] == batch[2]:
            return False
        number, before = made.inputs[0].tensor, made.index
    elif op_name(layer) == LAYER:
        made = next(iter(facts.producers(number, before)), None)
        is_turned = made is not None and op_name(made) == "transpose" and shape[1:] == (batch[0], batch[2])
        if made is None or not is_turned or len(shape) != 3 or shape[0] < batch[1]:
            return False
        number, before = made.inputs[0].tensor, made.index
    elif op_name(layer) not in RECURRENT or shape != batch:
        return False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is added:
            return True
        same = _same_rows(facts, made, batch) if made is not None else None
        if made is None or same is None:
            return False
        number, before = same, made.index
    return False


def _same_rows(facts: TraceIndex, made: Call, batch: tuple[int, ...]) -> int | None:
    """Returns the input of a call whose rows a result has in their places; a token may be put before them."""
    if op_name(made) == "cat" and facts.tensor(made.outputs[0].tensor).shape[::2] == batch[::2]:
        return next((a.tensor for a in made.inputs if facts.tensor(a.tensor).shape == batch), None)
    return made.inputs[0].tensor if op_name(made) in _SAME_ROWS and made.inputs else None


def _attends(facts: TraceIndex, layer: Call, added: Call, batch: tuple[int, ...]) -> bool:
    """Returns whether attention that is written out has scores, or queries, of the sum for each of its rows along the
    second dimension."""
    shape = facts.tensor(layer.inputs[0].tensor).shape
    rows, time = batch[:2]
    is_along = shape[-2:] == (time, time) if op_name(layer) == "softmax" else shape[-2:-1] == (time,) != shape[-1:]
    if len(shape) < 3 or shape[0] % rows or not is_along or time == batch[2]:
        return False
    waiting, seen = [(layer.inputs[0].tensor, layer.index)], set[int]()
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is added:
            return True
        if made is None or made.index in seen or op_name(made) not in _IN_ATTENTION or len(seen) > _MAX_CALLS:
            continue
        queries = facts.tensor(made.inputs[0].tensor).shape if made.inputs else ()
        if op_name(made) in _PRODUCTS and queries.count(time) != 1:
            return False  # the shape does not say which dimension is the time
        seen.add(made.index)
        waiting += [(access.tensor, made.index) for access in made.inputs]
    return False


def _has_positions(facts: TraceIndex, added: Call, taken: Call, batch: tuple[int, ...]) -> bool:
    """Returns whether something has been added along the second dimension as well: the table is for the first."""
    along = (batch[1:], (1, *batch[1:]))
    for _, call in ancestry(facts, added.outputs[0].tensor, added.index + 1, _MAX_CALLS):
        if op_name(call) in ("add", "radd", "iadd"):
            if any(facts.tensor(access.tensor).shape in along for access in call.inputs):
                return True
        elif op_name(call) == "embedding" and call is not taken:
            if is_counted(facts, call.inputs[0].tensor, call.index):
                return True
    return False


def _is_of_ids(facts: TraceIndex, added: Call, number: int, batch: tuple[int, ...]) -> bool:
    """Returns whether the table is added to the embeddings of ids in the shape of the batch."""
    before = added.index
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
