"""Finds reshapes that take rows apart in another order than the one in which a call has put them together.

`x.repeat(k, 1)` puts k copies of the whole batch one after another, so its rows have the order (k, batch).
`x.repeat_interleave(k, dim=0)` puts the copies of each sample together: (batch, k). A reshape that merges two
dimensions has their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls, recorded_above
from tensorlens.analysis.training.order_free_uses import is_order_free
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.records.model import Backward, Call

_RESHAPING = frozenset("view reshape unflatten".split())
_MERGING = frozenset("view reshape flatten".split())
_ELEMENTWISE = frozenset(
    "add radd sub rsub mul rmul div truediv rtruediv pow square exp log log1p abs neg sqrt sigmoid tanh relu gelu "
    "silu softplus logsigmoid clamp sin cos where lerp binary_cross_entropy_with_logits binary_cross_entropy mse_loss "
    "lgamma erf expm1 reciprocal clone detach contiguous float to double".split()
)
_COMPARING = frozenset(  # of which no sum is a loss
    "eq ne lt gt le ge remainder and or invert logical_and logical_or logical_not masked_fill floor_divide long int "
    "bool half bfloat16 type_as type maximum minimum sign".split()
)
_BY_ROW = frozenset(  # of the first input
    "linear dropout layer_norm batch_norm squeeze unsqueeze chunk split sum mean logsumexp log_softmax softmax expand "
    "flatten conv1d conv2d embedding gather take_along_dim norm vector_norm amax amin std var "
    "multinomial bernoulli argmax".split()
)
_OF_CHANCES = frozenset(("multinomial", "bernoulli"))  # draws that depend on what they are given
_PRODUCTS = frozenset(("bmm", "baddbmm", "matmul", "einsum"))  # one for each row
_BY_DIMENSION = frozenset(
    "chunk split sum mean logsumexp log_softmax softmax expand flatten gather take_along_dim norm vector_norm amax "
    "amin std var argmax transpose".split()
)
_TURNING = frozenset("T t transpose view reshape squeeze unsqueeze flatten".split())
_SAME_FIRST = frozenset(
    "view reshape unflatten getitem cat stack".split()
)  # if as many rows are first before and after
_REDUCING = frozenset("mean sum std var amax amin max min argmax argmin logsumexp softmax log_softmax median".split())
_EQUAL = frozenset("zeros zeros_like ones ones_like full full_like".split())  # whose copies are all alike
_EXPANDED = frozenset("expand expand_as broadcast_to repeat".split())
_FREE = DRAWS | _EQUAL  # have no order of their own
_MAX_CALLS = 400
_Order = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MixedRows:
    """A reshape of rows that a call put together in another order: `order` has its two sizes, `after` those of the
    reshape."""

    reshape: Call
    made: Call  # what put them together
    order: _Order
    after: _Order


def mixed_rows(facts: TraceIndex) -> Iterator[MixedRows]:
    """Yields these reshapes, one for each line. A program that takes rows apart in both orders is left alone."""
    reported: set[int] = set()
    shapes = {_shape(facts, call.outputs[0].tensor)[:2] for call in facts.calls if op_name(call) in _RESHAPING}
    merged, reduced = set(_merged(facts)), _reduced(facts)
    for backward in examined_passes(facts):
        for call in _calls(facts, backward):
            if op_name(call) in _RESHAPING and call.inputs and call.site not in reported:
                before, after = _shape(facts, call.inputs[0].tensor), _shape(facts, call.outputs[0].tensor)
                if len(after) < 2 or not before or before[0] != after[0] * after[1] or min(after[:2]) < 2:
                    continue
                is_merged = after[:2] in merged and call.outputs[0].tensor not in reduced
                is_excused = after[1::-1] in shapes or is_merged
                found = None if is_excused else put_together(facts, call.inputs[0].tensor, call.index, before[0])
                if found is None or found[1] != after[1::-1] or after[0] == after[1]:
                    continue
                if not is_order_free(facts, call, backward.index, _ELEMENTWISE):
                    reported.add(call.site)
                    yield MixedRows(call, found[0], found[1], (after[0], after[1]))


def _calls(facts: TraceIndex, backward: Backward) -> Iterator[Call]:
    """Yields the calls with a graph of a pass, and the reshapes of what its loss is computed from, as of rewards."""
    yield from recorded_above(facts, backward)
    for call in loss_calls(facts, backward):
        for access in call.inputs:
            yield from (made for made in facts.producers(access.tensor, call.index)[:1] if op_name(made) in _RESHAPING)


def put_together(facts: TraceIndex, tensor: int, until: int, rows: int) -> tuple[Call, _Order] | None:
    """Returns the only call that put together the rows of a tensor, and their order.

    All calls in between keep the rows in their places, and the other values that they use have no order of their own.
    """
    waiting, seen = [(tensor, until)], set[int]()
    found: dict[int, tuple[Call, _Order]] = {}
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.outputs or len(seen) > _MAX_CALLS:
            return None
        is_of_rows = op_name(made) in _OF_CHANCES and bool(_row_by_row(facts, made, rows))
        if made.index in seen or (op_name(made) in _FREE and not is_of_rows):
            continue
        seen.add(made.index)
        order = _order(facts, made, rows) if made.inputs else None
        if order is not None:
            if not _is_free(facts, made):
                found[made.index] = made, order
        else:
            sources = _row_by_row(facts, made, rows)
            if not sources:
                return None
            waiting += [(number, made.index) for number in sources]
    orders = {order for _, order in found.values()}
    return next(iter(found.values())) if len(orders) == 1 else None


def _row_by_row(facts: TraceIndex, made: Call, rows: int) -> list[int]:
    """Returns the inputs whose rows the rows of a call's result are computed from, each from that in its place; empty
    if a call may move rows."""
    name, result = op_name(made), _shape(facts, made.outputs[0].tensor)
    if (made.writes and name != "masked_fill") or not made.inputs:
        return []
    if _is_turned_row(facts, made, rows):
        return [made.inputs[0].tensor]
    if name in _PRODUCTS:
        shapes = [result, *(_shape(facts, access.tensor) for access in made.inputs)]
        is_by_row = len(result) > 2 and all(shape[:1] == (rows,) and shape.count(rows) == 1 for shape in shapes)
        return [access.tensor for access in made.inputs] if is_by_row else []
    if name in _SAME_FIRST:
        own = [_shape(facts, access.tensor) for access in made.inputs]
        is_joined = name in ("cat", "stack")
        is_kept = result[:1] == (rows,) and all(shape[:1] == (rows,) for shape in own) and result.count(rows) == 1
        return [access.tensor for access in made.inputs] if is_kept and (is_joined or len(own) == 1) else []
    if name not in _ELEMENTWISE | _COMPARING | _BY_ROW and name != "transpose":
        return []
    inputs = made.inputs[:1] if name in _BY_ROW else made.inputs
    own = [_shape(facts, access.tensor) for access in inputs]
    aligned = [shape[:1] == (rows,) and (name in _BY_ROW or len(shape) == len(result)) for shape in own]
    if name in _BY_DIMENSION and not _is_plain(facts, made, rows):
        return []
    return [each.tensor for each, is_row in zip(inputs, aligned, strict=True) if is_row]


def _is_turned_row(facts: TraceIndex, made: Call, rows: int) -> bool:
    """Returns whether a call makes a row of a column, or the other way round, as the draws of `Categorical` are."""
    is_turning = op_name(made) in _TURNING and len(made.inputs) == 1
    return is_turning and all(
        sorted(_shape(facts, access.tensor)) in ([rows], [1, rows]) for access in (*made.inputs, *made.outputs)
    )


def _reduced(facts: TraceIndex) -> set[int]:
    """Returns the tensors that a call reduces along a dimension, so that it matters which rows are in one group."""
    return {
        call.inputs[0].tensor
        for call in facts.calls
        if op_name(call) in _REDUCING and call.inputs and call.outputs and _shape(facts, call.outputs[0].tensor)
    }


def _order(facts: TraceIndex, made: Call, rows: int) -> _Order | None:
    """Returns the two sizes whose product is the rows of a call's result, in the order of the rows, if a call has put
    copies together or merged two dimensions."""
    name, shape = op_name(made), _shape(facts, made.inputs[0].tensor)
    if _shape(facts, made.outputs[0].tensor)[:1] != (rows,) or 0 in shape or shape[:1] in ((), (rows,)):
        return None
    if rows % shape[0]:
        return None
    copies = rows // shape[0]
    if name in ("repeat", "tile") and len(shape) == len(_shape(facts, made.outputs[0].tensor)):
        return copies, shape[0]
    if name in ("cat", "concat") and len({access.tensor for access in made.inputs}) == 1:
        return copies, shape[0]
    if name in ("getitem", "index_select") and len(made.inputs) == 2:
        index = next(iter(facts.producers(made.inputs[1].tensor, made.index)), None)
        return None if index is None or not index.inputs else _order(facts, index, rows)
    if name == "repeat_interleave" and len(made.inputs) == 1:
        return shape[0], copies
    if name in _MERGING and len(shape) > 1 and shape[0] * shape[1] == rows and min(shape[:2]) > 1:
        return (shape[0], shape[1])
    return None


def _merged(facts: TraceIndex) -> Iterator[_Order]:
    """Yields the first two sizes of what other calls merge to rows again, as the chunks of a batch."""
    for call in facts.calls:
        if not call.inputs or not call.outputs:
            continue
        first, result = _shape(facts, call.inputs[0].tensor), _shape(facts, call.outputs[0].tensor)
        if op_name(call) in _MERGING and len(first) > 1 and result[:1] == (first[0] * first[1],):
            yield first[0], first[1]
        elif op_name(call) == "cat" and first and result[:1] == (len(call.inputs) * first[0],):
            yield len(call.inputs), first[0]


def _is_free(facts: TraceIndex, made: Call) -> bool:
    """Returns whether what a call copies or merges has no order of its own: all rows are alike, or each was moved to
    the place of another."""
    source = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    if source is None or op_name(source) not in _EXPANDED or not source.inputs:
        return source is not None and op_name(source) in _EQUAL | {"roll"}
    own, result = _shape(facts, source.inputs[0].tensor), _shape(facts, source.outputs[0].tensor)
    first = ((1,) * (len(result) - len(own)) + own)[: 2 if op_name(made) in _MERGING else 1]
    return set(first) == {1}


def _is_plain(facts: TraceIndex, made: Call, rows: int) -> bool:
    """Returns whether one dimension only has as many elements as there are rows, before and after a call: which one a
    call reduces, or adds, is not recorded."""
    shapes = _shape(facts, made.inputs[0].tensor), _shape(facts, made.outputs[0].tensor)
    return all(shape.count(rows) == 1 for shape in shapes)


def _shape(facts: TraceIndex, number: int) -> tuple[int, ...]:
    return facts.tensor(number).shape
