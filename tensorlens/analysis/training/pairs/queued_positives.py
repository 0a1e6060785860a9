"""Finds contrastive losses whose negatives include the positives, because a queue is given them first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.pair_tables import JOINS, PRODUCTS, SCALING, made_by, shape_of
from tensorlens.records.model import Call

_PAIRED = frozenset("sum unsqueeze view reshape squeeze bmm".split()) | SCALING
_COPIES = frozenset("detach clone contiguous to float data get t T transpose normalize".split())
_MOST_CALLS = 30
_MOST_ABOVE = 40


@dataclass(frozen=True, slots=True)
class QueuedPositive:
    """The call that joins the logits of positives and negatives, and the one that has put the positives into a
    queue."""

    joined: Call
    queued: Call
    negatives: Call  # the product with the queue
    keys: int


def queued_positives(facts: TraceIndex) -> Iterator[QueuedPositive]:
    """Yields these calls, one for each line."""
    reported = set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if call.site not in reported and op_name(call) in JOINS and len(call.inputs) == 2:
                found = _found(facts, call)
                if found is not None:
                    reported.add(call.site)
                    yield found


def _found(facts: TraceIndex, joined: Call) -> QueuedPositive | None:
    shapes = [shape_of(facts, access.tensor) for access in joined.inputs]
    sizes = sorted(shape[1] for shape in shapes if len(shape) == 2)
    if len(sizes) != 2 or sizes[0] != 1 or sizes[1] < 2 or shapes[0][0] != shapes[1][0]:
        return None
    own, others = sorted(joined.inputs, key=lambda access: shape_of(facts, access.tensor)[1])
    pair = _product(facts, own.tensor, joined.index, is_paired=True)
    table = _product(facts, others.tensor, joined.index, is_paired=False)
    if pair is None or table is None:
        return None
    queues = [access.tensor for access in table.inputs if not facts.requires_grad(access.tensor, table.index - 1)]
    keys = [access.tensor for access in pair.inputs if not facts.requires_grad(access.tensor, pair.index - 1)]
    if len(queues) != 1 or len(keys) != 1:
        return None
    key = _original(facts, keys[0], pair.index)
    queued = _put_by(facts, queues[0], table.index, key)
    return None if queued is None else QueuedPositive(joined, queued, table, key)


def _product(facts: TraceIndex, number: int, before: int, is_paired: bool) -> Call | None:
    """Returns the product of two tensors that logits are: row by row, or of all rows with all."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        large = [access.tensor for access in made.inputs if shape_of(facts, access.tensor) not in ((), (1,))]
        if len(large) == 2:
            is_known = op_name(made) in (PRODUCTS | {"mul", "bmm"} if is_paired else PRODUCTS)
            return made if is_known else None
        if len(large) != 1 or op_name(made) not in (_PAIRED if is_paired else SCALING):
            return None
        number, before = large[0], made.index
    return None


def _original(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that another one is a copy or a view of."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        name = "" if made is None else op_name(made)
        if made is None or len(made.inputs) != 1 or name not in _COPIES | {"unsqueeze", "view"} or name == "normalize":
            return number
        number, before = made.inputs[0].tensor, made.index
    return number


def _put_by(facts: TraceIndex, queue: int, before: int, key: int) -> Call | None:
    """Returns the call that has put the keys into what the negatives are computed from: a write, or a join."""
    for _, made in ancestry(facts, queue, before, _MOST_ABOVE):
        is_put = bool(made.writes) or op_name(made) in JOINS
        if is_put and any(_original(facts, access.tensor, made.index) == key for access in made.inputs):
            is_held = len(made.inputs) > 1 or bool(made.writes)
            return made if is_held else None
    return None
