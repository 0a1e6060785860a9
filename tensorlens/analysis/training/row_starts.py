"""Finds the calls that put the rows of a value into their order: those that take rows, or put a batch together."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Call

BY_PLACE = frozenset(  # keep each element in its place
    "add radd sub rsub mul rmul div truediv rtruediv pow square exp log log1p abs neg sqrt sigmoid tanh relu softplus "
    "logsigmoid clamp float to double long bool int clone detach eq ne gt ge lt le logcumsumexp cumsum log_softmax "
    "softmax gelu silu elu selu celu relu6 mish hardtanh hardswish hardsigmoid softsign prelu erf sin cos leaky_relu "
    "minimum maximum where masked_fill and or logical_and logical_or logical_not invert reciprocal rsqrt contiguous "
    "cpu cuda type nan_to_num round floor dropout alpha_dropout layer_norm batch_norm entr xlogy special_entr "
    "special_xlogy sign".split()
)
TAKING = frozenset("getitem index_select take gather take_along_dim".split())
COLLATED = frozenset("stack tensor as_tensor pad_sequence".split())
_CONSTANT = frozenset("zeros ones full zeros_like ones_like full_like eye empty".split())
_FIRST = frozenset(  # keep the first dimension of the first input in its place
    "linear embedding conv1d conv2d max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d "
    "adaptive_avg_pool2d adaptive_max_pool1d flatten view reshape sum mean max amax min amin any all norm logsumexp "
    "count_nonzero matmul mm bmm group_norm std var topk".split()
)
_REDUCING = frozenset("sum mean max amax min amin any all norm logsumexp count_nonzero std var".split())
_MOVING = frozenset("transpose permute t T mT getitem select unbind iter".split())
_RECURRENT = frozenset("gru lstm rnn_tanh rnn_relu".split())
_MAX_CALLS = 200


@dataclass(frozen=True, slots=True)
class Start:
    """A tensor whose rows are in an order of their own, and the call that made it."""

    call: Call | None
    tensor: int

    @property
    def is_taken(self) -> bool:
        return self.call is not None and op_name(self.call) in TAKING and len(self.call.inputs) == 2

    @property
    def is_collated(self) -> bool:
        return self.call is not None and op_name(self.call) in COLLATED


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor before an event, with its dimension of rows."""

    tensor: int
    before: int
    axis: int


def row_starts(facts: TraceIndex, number: int, before: int, axis: int = 0) -> list[Start]:
    """Returns these tensors for a value whose rows are along a dimension; none if that is not known of one of them.

    On the way the rows keep their order. Constants have no order.
    """
    shape = facts.tensor(number).shape
    rows = shape[axis] if len(shape) > axis else 0
    waiting, found, seen = [_Place(number, before, axis)], dict[int, Start](), set[tuple[int, int]]()
    for place in waiting:
        made = next(iter(facts.producers(place.tensor, place.before)), None)
        if len(seen) > _MAX_CALLS or (made is not None and made.writes):
            return []
        key = place.tensor, place.axis
        if key in seen or (made is not None and op_name(made) in _CONSTANT):
            continue
        seen.add(key)
        above = None if made is None else _above(facts, made, place, rows)
        if made is None or above is None:
            found[place.tensor] = Start(made, place.tensor)
        elif any(each.axis < 0 for each in above):
            return []
        else:
            waiting += above
    return list(found.values())


def _above(facts: TraceIndex, made: Call, place: _Place, rows: int) -> list[_Place] | None:
    """Returns the inputs with the same rows; None if the call starts an order, and the axis -1 if it is not known."""
    name = op_name(made)
    out, first = facts.tensor(place.tensor).shape, made.inputs[0].tensor if made.inputs else None
    if first is not None and name == "stack" and _is_of_whole_rows(facts, made, rows):
        return [_Place(access.tensor, made.index, 0) for access in made.inputs]
    if first is None or (name in TAKING and len(made.inputs) == 2) or name in COLLATED:
        return None
    shape = facts.tensor(first).shape
    if name in BY_PLACE or name == "cat":
        found = list(_beside(facts, made, place, rows))
        return found or None
    axis = -1
    if name == "getitem" and len(shape) == len(out) and shape[place.axis] != rows:
        return None  # a slice takes the rows
    if name in ("squeeze", "unsqueeze"):
        axis = _of_nth(shape, sum(size > 1 for size in out[: place.axis]))
    elif name in _FIRST and place.axis == 0 and shape[:1] == (rows,) and _keeps_first(name, shape, out):
        axis = 0
    elif name in _REDUCING and out == shape[1:] and shape.count(rows) == 1:
        axis = place.axis + 1
    elif name == "sort" and place.axis == 0 and written_dimension(facts, made) not in (None, 0):
        axis = 0
    elif name in _RECURRENT or name == "pad_packed_sequence":
        return [_recurrent(facts, made, place, rows)]
    elif name == "getitem" and _is_plain(facts, made) and (kept := _kept(facts, made)) is not None:
        axis = kept[place.axis]
    elif name in _MOVING and shape.count(rows) == 1 and (name != "getitem" or _is_plain(facts, made)):
        axis = shape.index(rows)
    elif name not in _FIRST and name not in _MOVING:
        return None
    if shape.count(rows) == 0:
        return None
    return [_Place(first, made.index, axis)]


def _is_of_whole_rows(facts: TraceIndex, made: Call, rows: int) -> bool:
    """Returns whether a call stacks values that have all the rows, as the predictions of an ensemble."""
    shapes = {facts.tensor(access.tensor).shape[:1] for access in made.inputs}
    return shapes == {(rows,)} and facts.tensor(made.outputs[0].tensor).shape.count(rows) == 1


def _beside(facts: TraceIndex, made: Call, place: _Place, rows: int) -> Iterator[_Place]:
    """Yields the inputs of a call by place that have the rows: parameters and constants have none."""
    dimensions = len(facts.tensor(place.tensor).shape)
    for access in made.inputs:
        shape = facts.tensor(access.tensor).shape
        axis = place.axis - (dimensions - len(shape))
        if axis >= 0 and shape[axis] == rows and not facts.is_leaf_requiring_grad(access.tensor, made.index):
            yield _Place(access.tensor, made.index, axis)


def _of_nth(shape: tuple[int, ...], place: int) -> int:
    """Returns the dimension of a number of those that are larger than 1."""
    large = [axis for axis, size in enumerate(shape) if size > 1]
    return large[place] if place < len(large) else -1


def _keeps_first(name: str, shape: tuple[int, ...], out: tuple[int, ...]) -> bool:
    if name in ("matmul", "mm", "bmm"):
        return len(shape) == len(out) and shape.count(shape[0]) == 1
    if name == "topk":
        return out[1:] != shape[1:]  # of each row
    return name not in _REDUCING or out != shape[1:]


def _recurrent(facts: TraceIndex, made: Call, place: _Place, rows: int) -> _Place:
    """Returns the padded sequences that a recurrent layer, or the call that pads its result, has run over."""
    is_padded, at = op_name(made) == "pad_packed_sequence", made
    unknown = _Place(place.tensor, made.index, -1)
    if is_padded:
        run = facts.creator(made.inputs[0].tensor)
        if run is None or op_name(run) not in _RECURRENT:
            return unknown
        at = run
    data = at.inputs[0].tensor
    is_state = not is_padded and at.outputs[0].tensor != place.tensor
    if place.axis > 1 or (is_state and place.axis != 1):
        return unknown
    packed = facts.creator(data)
    if packed is not None and op_name(packed) == "pack_padded_sequence":
        data, at = packed.inputs[0].tensor, packed
    elif not is_state:
        return _Place(data, at.index, place.axis)
    shape = facts.tensor(data).shape
    return _Place(data, at.index, shape.index(rows)) if shape[:2].count(rows) == 1 else unknown


def _is_plain(facts: TraceIndex, made: Call) -> bool:
    """Returns whether an index, as written, has numbers and slices only: no list that may put rows in another order."""
    node = facts.node_at(made.site)
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    places = [each for each in parts if not isinstance(each, ast.Slice)]
    lost = len(facts.tensor(made.inputs[0].tensor).shape) - len(facts.tensor(made.outputs[0].tensor).shape)
    is_one = lost == len(places)  # a list under a name would leave its dimension
    return all(_is_number(each) or (is_one and isinstance(each, ast.Name)) for each in places)


def _kept(facts: TraceIndex, made: Call) -> list[int] | None:
    """Returns the dimensions that an index of numbers and slices leaves, in order; None if it may add others."""
    node = facts.node_at(made.site)
    parts = [] if not isinstance(node, ast.Subscript) else [node.slice]
    parts = parts[0].elts if parts and isinstance(parts[0], ast.Tuple) else parts
    if any(isinstance(each, ast.Constant) and type(each.value) is not int for each in parts):
        return None
    sizes = range(len(facts.tensor(made.inputs[0].tensor).shape))
    kept = [at for at in sizes if at >= len(parts) or isinstance(parts[at], ast.Slice)]
    return kept if len(kept) == len(facts.tensor(made.outputs[0].tensor).shape) else None


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
