"""Finds predictions in the order of a sort beside values of the same samples that are still in the order before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Call

_JOINING = frozenset(
    "mul rmul sub rsub add radd div truediv rtruediv where mse_loss l1_loss smooth_l1_loss huber_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss".split()
)
_BY_PLACE = frozenset(  # keep each row in its place
    "add radd sub rsub mul rmul div truediv rtruediv pow square exp log log1p abs neg sqrt sigmoid tanh relu softplus "
    "logsigmoid clamp float to double long bool squeeze unsqueeze clone detach eq ne gt ge lt le logcumsumexp cumsum "
    "log_softmax".split()
)
TAKING = frozenset("getitem index_select take gather take_along_dim".split())
_SORTING = frozenset(("argsort", "sort"))
_DRAWS = frozenset(("randperm", "randint", "multinomial"))
_STACK = "stack"
_MAX_CALLS, _NEAR = 40, 12


@dataclass(frozen=True, slots=True)
class SortedRows:
    """A call that joins sorted predictions with values in the order before, and the calls that make both orders."""

    joined: Call
    taken: Call  # what puts the predictions into the order
    sort: Call
    other: int  # the input that is in the order before


def sorted_rows(facts: TraceIndex) -> Iterator[SortedRows]:
    """Yields these calls, one for each line that sorts predictions. The key of the sort and the other values must have
    been taken from a data set together."""
    reported = set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _JOINING or len(call.inputs) != 2 or call.writes:
                continue
            for one, other in ((0, 1), (1, 0)):
                found = _joined(facts, call, call.inputs[one].tensor, call.inputs[other].tensor)
                if found is not None and found.taken.site not in reported:
                    reported.add(found.taken.site)
                    yield found


def _joined(facts: TraceIndex, call: Call, sorted_one: int, other: int) -> SortedRows | None:
    rows = facts.tensor(other).shape[:1]
    is_class = op_name(call) in ("cross_entropy", "nll_loss")  # of each row
    same = facts.tensor(sorted_one).shape[: 1 if is_class else None]
    if not rows or rows[0] < 2 or same != (rows if is_class else facts.tensor(other).shape):
        return None
    if facts.requires_grad(other, call.index) or not facts.requires_grad(sorted_one, call.index):
        return None
    beside, taken = row_starts(facts, other, call.index, rows), row_starts(facts, sorted_one, call.index, rows)
    sorts = [(each, _sort_of(facts, each)) for each in taken or () if op_name(each) in TAKING]
    if len({each.index for each, sort in sorts if sort is not None}) != 1 or not beside:
        return None
    take, sort = next((each, sort) for each, sort in sorts if sort is not None)
    key = None if sort is None else row_starts(facts, sort.inputs[0].tensor, sort.index, rows)
    if sort is None or not key or not facts.requires_grad(take.inputs[0].tensor, take.index):
        return None
    if facts.tensor(take.outputs[0].tensor).shape[:1] != facts.tensor(take.inputs[0].tensor).shape[:1]:
        return None
    is_before = all(any(are_together(one, start) for start in key) for one in beside)
    is_before = is_before and all(rows_are_drawn(facts, start) for start in (*beside, *key))
    return SortedRows(call, take, sort, other) if is_before else None


def row_starts(facts: TraceIndex, number: int, before: int, rows: tuple[int, ...]) -> list[Call] | None:
    """Returns the calls that put the rows of a value into their order; None if that is not known of one of them."""
    waiting, found, seen = [(number, before)], dict[int, Call](), 0
    for each, limit in waiting:
        made, seen = next(iter(facts.producers(each, limit)), None), seen + 1
        if made is None or seen > _MAX_CALLS or made.writes:
            return None
        name = op_name(made)
        if (name in TAKING and len(made.inputs) == 2) or name == _STACK:
            found[made.index] = made
        elif name in _BY_PLACE and facts.tensor(made.outputs[0].tensor).shape[:1] == rows:
            waiting += [(a.tensor, made.index) for a in made.inputs if facts.tensor(a.tensor).shape[:1] == rows]
        else:
            return None
    return list(found.values())


def _sort_of(facts: TraceIndex, take: Call) -> Call | None:
    """Returns the sort of one row of keys whose order a call takes rows in."""
    if op_name(take) not in TAKING or len(take.inputs) != 2:
        return None
    index = take.inputs[1].tensor
    made = facts.creator(index)
    is_sort = made is not None and op_name(made) in _SORTING and made.outputs[-1].tensor == index
    keys = facts.tensor(made.inputs[0].tensor).shape if made is not None and is_sort else ()
    return made if len(keys) == 1 and keys == facts.tensor(take.inputs[0].tensor).shape[:1] else None


def rows_are_drawn(facts: TraceIndex, take: Call) -> bool:
    """Returns whether rows are taken in a random order: another one may be that of the sort already."""
    if op_name(take) == _STACK:
        near = facts.calls_between(0, take.index)
        return any(call.site == take.site and op_name(call) in _DRAWS for call in near)
    made = [call for _, call in ancestry(facts, take.inputs[1].tensor, take.index, _MAX_CALLS)]
    return any(op_name(call) in _DRAWS for call in made) and not any(op_name(call) in _SORTING for call in made)


def are_together(one: Call, other: Call) -> bool:
    """Returns whether two calls take the same rows: with one index, or when a loader puts a batch together."""
    if op_name(one) == op_name(other) == _STACK:
        return one.site == other.site and abs(one.index - other.index) <= _NEAR and len(one.inputs) == len(other.inputs)
    both = op_name(one) in TAKING and op_name(other) in TAKING
    return both and one.inputs[1].tensor == other.inputs[1].tensor
