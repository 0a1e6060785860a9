"""Finds batches that are mixed with their own rows in one random order, and targets that are taken in another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Backward, Call

_READS = frozenset(("getitem", "index_select"))
_SUMS = frozenset("add radd iadd lerp".split())
_KEEPING = frozenset("mul rmul to float getitem view clone unsqueeze one_hot double half contiguous".split())
_LOSSES = frozenset(
    "cross_entropy nll_loss mse_loss l1_loss binary_cross_entropy_with_logits smooth_l1_loss mul rmul sub rsub".split()
)
_MAX_STEPS, _MIN_PASSES, _MAX_CALLS = 5, 2, 200


@dataclass(frozen=True, slots=True)
class MixedPartners:
    """A call that takes the rows that a batch is mixed with, and one that takes targets in another order."""

    rows: Call
    mixed: Call
    targets: Call


@dataclass(slots=True)
class _Pass:
    """Collects the calls of one pass that take rows in a random order, by the call that draws it."""

    sums: dict[int, tuple[int, Call, Call]] = field(default_factory=dict)  # result -> (order, rows, sum)
    targets: dict[int, Call] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)  # the sums that are targets
    own: set[int] = field(default_factory=set)  # the orders that mixed batches themselves are in
    begin: int = 0

    def mixed(self) -> dict[int, tuple[Call, Call]]:
        """Returns the sums that are no targets, by their order."""
        return {order: (rows, made) for each, (order, rows, made) in self.sums.items() if each not in self.wanted}


def mixed_partners(facts: TraceIndex) -> Iterator[MixedPartners]:
    """Yields the first of these if, in each pass that mixes, no order of the targets is one of the mixed rows.

    Another use of rows in one of the orders, as for features that are mixed too, does not count. Nor does an order that
    the batch itself is in, or one that was drawn before the pass.
    """
    if not any(_is_whole(facts, call) for call in facts.calls):
        return
    passes, current = list[_Pass](), _Pass()
    for event in facts.events:
        if isinstance(event, Backward):
            passes += [current] if current.mixed() and current.targets else []
            current = _Pass(begin=event.index)
        elif isinstance(event, Call) and not event.within and len(event.inputs) > 1:
            _note(facts, event, current)
    apart = [each for each in passes if not each.mixed().keys() & each.targets.keys()]
    if len(apart) < _MIN_PASSES or len(apart) < len(passes) or any(_is_shared(each) for each in passes):
        return
    rows, mixed = next(iter(apart[0].mixed().values()))
    yield MixedPartners(rows, mixed, next(iter(apart[0].targets.values())))


def _is_whole(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call takes all rows of a tensor, in an order that `randperm()` draws."""
    if op_name(call) not in _READS or len(call.inputs) != 2:
        return False
    table, index = (facts.tensor(access.tensor) for access in call.inputs)
    order = facts.creator(index.id) if index.shape == table.shape[:1] else None
    return order is not None and op_name(order) == "randperm"


def _is_shared(each: _Pass) -> bool:
    """Returns whether several mixes, or several orders of targets, make it unknown which belong together."""
    return len(each.mixed()) != 1 or len(each.targets) != 1


def _note(facts: TraceIndex, call: Call, current: _Pass) -> None:
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    if (name in _SUMS and len(inputs) == 2) or name in ("lerp", "setitem"):
        _note_mixed(facts, call, inputs, current)
    elif name in _LOSSES and current.sums:
        for one, other in (inputs[:2], inputs[1::-1]):
            is_pair = facts.requires_grad(one, call.index) and not facts.requires_grad(other, call.index)
            if is_pair and facts.tensor(one).shape[:1] == facts.tensor(other).shape[:1]:
                _note_target(facts, other, call.index, current)


def _note_target(facts: TraceIndex, number: int, before: int, current: _Pass) -> None:
    taken = _taken(facts, number, before)
    if taken is not None and taken[1] > current.begin and taken[1] not in current.own:
        current.targets.setdefault(taken[1], taken[0])
    for result, (order, rows, _) in current.sums.items():
        if _is_from(facts, number, result, before):
            current.wanted.add(result)
            current.targets.setdefault(order, rows)


def _note_mixed(facts: TraceIndex, call: Call, inputs: list[int], current: _Pass) -> None:
    """Notes a sum of a batch and of its own rows in a random order: of data, or of targets."""
    one, other = (inputs[0], inputs[-1]) if op_name(call) == "setitem" else inputs[:2]
    if not (call.writes or call.outputs) or any(facts.requires_grad(each, call.index) for each in (one, other)):
        return
    for plain, moved in ((one, other), (other, one)):
        taken = _taken(facts, moved, call.index)
        if taken is None:
            continue
        table = taken[0].inputs[0].tensor
        if _is_from(facts, plain, table, call.index):
            result = call.writes[0].tensor if call.writes else call.outputs[0].tensor
            current.sums.setdefault(result, (taken[1], taken[0], call))
            current.own |= _orders_above(facts, table, taken[0].index) - {taken[1]}


def _orders_above(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns the calls that drew random orders which a value was computed with."""
    found, seen, waiting = set[int](), set[tuple[int, int]](), [(number, before)]
    while waiting and len(seen) < _MAX_CALLS:
        here = waiting.pop()
        for made in () if here in seen else facts.producers(*here):
            if op_name(made) == "randperm":
                found.add(made.index)
            waiting += [(each.tensor, made.index) for each in made.inputs]
        seen.add(here)
    return found


def _taken(facts: TraceIndex, number: int, before: int) -> tuple[Call, int] | None:
    """Returns the call that took the rows of a value in a random order, and the call that drew the order."""
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _READS and len(made.inputs) == 2:
            order = facts.creator(made.inputs[1].tensor)
            return (made, order.index) if order is not None and _is_whole(facts, made) else None
        if op_name(made) not in _KEEPING:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_from(facts: TraceIndex, number: int, table: int, before: int) -> bool:
    """Returns whether a value is a table, a copy of it, or a multiple."""
    for _ in range(_MAX_STEPS):
        if number == table:
            return True
        made = next((each for each in facts.producers(number, before) if not each.writes), None)
        if made is None or not made.inputs or op_name(made) not in _KEEPING:
            return False
        number, before = made.inputs[0].tensor, made.index
    return number == table
