"""Finds rows that are taken in an order, computed with, and taken in this order again: its inverse puts them back.

Of these, the ones count that values in the order before meet then.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.rows_and_dimensions.kept_axes import axis_after
from tensorlens.analysis.training.rows_and_dimensions.same_samples import are_of_same_samples
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Call
from tensorlens.records.training_values import OrderTwice

_TAKING = frozenset("getitem index_select gather take_along_dim".split())
_VIEWING = frozenset(
    "unsqueeze squeeze expand expand_as getitem view reshape repeat contiguous to long cpu cuda clone detach narrow "
    "split chunk tensor_split repeat_interleave broadcast_to split_with_sizes".split()
)
_CLASSES = frozenset(("cross_entropy", "nll_loss"))
_JOINING = _CLASSES | frozenset(
    "add radd sub rsub mul rmul div truediv cat where masked_fill mse_loss l1_loss smooth_l1_loss huber_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss poisson_nll_loss kl_div "
    "cosine_similarity cosine_embedding_loss".split()
)
_ORDERS = frozenset(
    "order orders ordering ordered shuffle shuffled shuffling shuf sort sorted sorting sorter perm perms permutation "
    "permute permuted restore".split()
)
_MOST_CALLS = 4_000  # of a pass


@dataclass(frozen=True, slots=True)
class TakenTwice:
    """The calls that make an order, take rows in it, and again, and the one that joins these with others."""

    order: OrderTwice
    made: Call
    first: Call
    second: Call
    joined: Call
    other: int


@dataclass(slots=True)
class _Flow:
    """The tensors of one pass, by what they have to do with an order."""

    order: OrderTwice
    size: int
    views: dict[int, int]  # the order and its views -> places along it
    plain: set[int] = field(default_factory=set)  # constants and parameters, and what is computed of these alone
    once: dict[int, Call] = field(default_factory=dict)  # values in the order -> the call that took their rows
    twice: dict[int, tuple[int, Call]] = field(default_factory=dict)  # -> (their dimension of rows, the second take)
    inverse: set[int] = field(default_factory=set)  # what is made with the order by another call than a take
    mixed: set[int] = field(default_factory=set)  # what is computed of these, in another way
    is_put_back: bool = False


def orders_taken_twice(facts: TraceIndex) -> Iterator[TakenTwice]:
    """Yields one for each line that makes such an order. The order is made in the pass, and used in no other one."""
    reported, places = set[int](), [each.index for each in facts.backwards if not each.failed]
    for order in facts.trace.inspection.orders_twice:
        made = facts.creator(order.tensor)
        if made is None or made.site in reported or not order.moved or not _is_called_order(facts, made):
            continue
        at = bisect_right(places, made.index)
        end = places[at] if at < len(places) else None
        found = None if end is None else _found(facts, order, made, end)
        if found is not None and end is not None and not _is_used_after(facts, order.tensor, end):
            reported.add(made.site)
            yield found


def _is_called_order(facts: TraceIndex, made: Call) -> bool:
    """Returns whether the names of an order say that it is one. Other ones may be those of successors or partners, for
    which a second take goes a second step."""
    names = facts.trace.sites[made.site].targets
    return any(_ORDERS & set(words_of(name)) for name in names)


def _is_used_after(facts: TraceIndex, number: int, end: int) -> bool:
    return any(access.tensor == number for call in facts.calls_between(end + 1) for access in call.inputs)


def _found(facts: TraceIndex, order: OrderTwice, made: Call, end: int) -> TakenTwice | None:
    """Follows the calls of a pass. Rows that an inverse of the order takes, too, may be where they belong."""
    size = facts.tensor(order.tensor).shape[order.axis]
    flow = _Flow(order, size, {order.tensor: size})
    flow.once |= {access.tensor: made for access in made.outputs if access.tensor != order.tensor}
    calls = list(facts.calls_between(made.index + 1, end))[:_MOST_CALLS]
    joins = list[tuple[Call, int, int]]()
    for call in calls:
        given = [access.tensor for access in call.inputs]
        joins += [(call, at, other) for at, other in _joined(facts, flow, call, given)]
        _follow(facts, flow, call, given)
        if flow.is_put_back:
            return None
    for call, at, other in joins:
        _, second = flow.twice[call.inputs[at].tensor]
        first = flow.once[second.inputs[0].tensor]
        is_only_use = sum(any(each.tensor == second.inputs[0].tensor for each in one.inputs) for one in calls) == 1
        if is_only_use and are_of_same_samples(facts, first.inputs[0].tensor, other, made.index):
            return TakenTwice(order, made, first, second, call, other)
    return None


def _follow(facts: TraceIndex, flow: _Flow, call: Call, given: list[int]) -> None:
    """Says of the results of a call what they have to do with the order."""
    if flow.views.keys().isdisjoint(given):
        _follow_values(facts, flow, call, given)
    else:
        _follow_order(facts, flow, call, given)
    known = flow.twice.keys() | flow.once.keys() | flow.views.keys() | flow.inverse | flow.mixed
    if not known.isdisjoint(given):
        flow.mixed |= {access.tensor for access in call.outputs} - known - flow.plain


def _follow_order(facts: TraceIndex, flow: _Flow, call: Call, given: list[int]) -> None:
    results = [access.tensor for access in call.outputs]
    name, ordered = op_name(call), [at for at, number in enumerate(given) if number in flow.views]
    if ordered and ordered[0] > 0 and name in _TAKING and not call.writes:
        _take(facts, flow, call, given[0], flow.views[given[ordered[0]]])
    elif ordered == [0] and name in _VIEWING and not call.writes:
        flow.views |= {number: size for number in results if (size := _places(facts, flow, number))}
    else:
        flow.inverse |= {*results, *(write.tensor for write in call.writes)}


def _follow_values(facts: TraceIndex, flow: _Flow, call: Call, given: list[int]) -> None:
    name, results = op_name(call), [access.tensor for access in call.outputs]
    if any(number in flow.inverse for number in given):
        is_taken = name in _TAKING and given[0] not in flow.inverse
        flow.is_put_back |= is_taken and (given[0] in flow.once or given[0] in flow.twice)
        flow.inverse |= set(results) if given[0] in flow.inverse and name in _VIEWING else set()
    elif _may_reorder(facts, flow, call, given):
        flow.is_put_back = True
    elif any(number in flow.twice for number in given):
        at = next(at for at, number in enumerate(given) if number in flow.twice)
        axis = axis_after(facts, call, at, flow.twice[given[at]][0])
        if axis is not None:
            flow.twice[results[0]] = axis, flow.twice[given[at]][1]
    elif any(number in flow.once for number in given):
        if all(_is_beside(facts, flow, number, call.index) for number in given):
            first = next(flow.once[number] for number in given if number in flow.once)
            flow.once |= dict.fromkeys(results, first)
    elif call.op not in OPS_ENTERING_TORCH and all(_is_plain(facts, flow, each, call.index) for each in given):
        flow.plain |= set(results)


def _may_reorder(facts: TraceIndex, flow: _Flow, call: Call, given: list[int]) -> bool:
    """Returns whether a call takes such rows with an index that may be an inverse, made where no call is recorded."""
    if op_name(call) not in _TAKING or len(given) < 2 or not (given[0] in flow.once or given[0] in flow.twice):
        return False
    known = [number in flow.once or _is_plain(facts, flow, number, call.index) for number in given[1:]]
    is_mask = all(facts.tensor(number).dtype == "bool" for number in given[1:])
    if is_mask or all(known) or (len(known) > 1 and known[0]):
        return False
    shape, made = (facts.tensor(number).shape for number in (given[0], call.outputs[0].tensor))
    return op_name(call) in ("getitem", "index_select") or shape == made


def _take(facts: TraceIndex, flow: _Flow, call: Call, data: int, places: int) -> None:
    """Notes a call that takes rows with the order: of values that are in the order already, or of others."""
    result = call.outputs[0].tensor
    if data in flow.twice:
        return
    if data not in flow.once and _is_plain(facts, flow, data, call.index):
        flow.plain.add(result)
    elif data not in flow.once:
        flow.once[result] = call
    elif flow.once[data].outputs[0].tensor == data:
        flow.is_put_back = True  # taken twice without a call in between, as for the second of two steps
    elif places == flow.size:
        axis = _axis(facts, flow, call)
        if axis is not None:
            flow.twice[result] = axis, call


def _places(facts: TraceIndex, flow: _Flow, number: int) -> int:
    """Returns how many places a view of the order, or a slice of it, holds; 0 if it may be anything else."""
    whole, shape, axis = facts.tensor(flow.order.tensor).shape, facts.tensor(number).shape, flow.order.axis
    large = [size for size in shape if size > 1]
    before, after = whole[:axis], whole[axis + 1 :]
    at = sum(size > 1 for size in before)
    if large[:at] != [size for size in before if size > 1] or after or at >= len(large):
        return 0
    return large[at] if large[at] <= flow.size else 0


def _axis(facts: TraceIndex, flow: _Flow, call: Call) -> int | None:
    """Returns the dimension along which a call takes all rows."""
    shape, made = (facts.tensor(each.tensor).shape for each in (call.inputs[0], call.outputs[0]))
    if shape != made:
        return None
    axis: int | None = flow.order.axis
    if len(facts.tensor(flow.order.tensor).shape) == 1 and shape.count(flow.size) == 1:
        axis = shape.index(flow.size)
    elif len(facts.tensor(flow.order.tensor).shape) == 1:
        axis = _written_axis(facts, call)
    return axis if axis is not None and axis < len(shape) and shape[axis] == flow.size else None


def _written_axis(facts: TraceIndex, call: Call) -> int | None:
    node = facts.node_at(call.site)
    if op_name(call) != "getitem" or not isinstance(node, ast.Subscript):
        return written_dimension(facts, call)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return next((at for at, part in enumerate(parts) if not isinstance(part, ast.Slice)), None)


def _is_plain(facts: TraceIndex, flow: _Flow, number: int, at: int) -> bool:
    return number in flow.plain or number in flow.views or facts.is_leaf_requiring_grad(number, at - 1)


def _is_beside(facts: TraceIndex, flow: _Flow, number: int, at: int) -> bool:
    """Returns whether a value is in the order, or has no rows that may be in another one."""
    has_rows = flow.size in facts.tensor(number).shape
    return number in flow.once or _is_plain(facts, flow, number, at) or not has_rows


def _joined(facts: TraceIndex, flow: _Flow, call: Call, given: list[int]) -> Iterator[tuple[int, int]]:
    """Yields (the input whose rows were taken twice, another one that has a row for each of them)."""
    if op_name(call) not in _JOINING or not call.outputs or not facts.requires_grad(call.outputs[0].tensor, call.index):
        return
    known = flow.twice.keys() | flow.once.keys() | flow.views.keys() | flow.inverse | flow.mixed
    for at, number in enumerate(given):
        for other in given if number in flow.twice else ():
            if other not in known and not _is_plain(facts, flow, other, call.index):
                if _fit(facts, call, number, other, flow.twice[number][0]):
                    yield at, other


def _fit(facts: TraceIndex, call: Call, number: int, other: int, axis: int) -> bool:
    """Returns whether a call joins the rows of two values, along a dimension of the first."""
    one, two, made = (facts.tensor(each).shape for each in (number, other, call.outputs[0].tensor))
    if op_name(call) in _CLASSES:
        return axis == 0 and one[:1] == two[:1]
    if op_name(call) == "cat":
        return len(one) == len(two) and made[axis] == one[axis] == two[axis]
    place = axis - len(one) + len(two)
    return 0 <= place < len(two) and two[place] == one[axis] > 1
