"""Finds recurrent and attention layers that run along the dimension of which each row has a target: the batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import history_lost_at, op_name
from tensorlens.analysis.training.drawn_rows import are_drawn_rows
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls, recorded_above
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
LOSSES = frozenset(
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy"
    " binary_cross_entropy_with_logits".split()
)
_DIFFERENCES = frozenset(("sub", "rsub"))  # as in a loss that is written out, and in `log_prob()`
_ATTENTION = "multi_head_attention_forward"
_SAME_PLACES = frozenset("dropout layer_norm relu tanh contiguous gelu".split())
_EACH_ROW_ALONE = _SAME_PLACES | {"add", "radd", "linear", _ATTENTION}
_POOLING = frozenset("mean sum amax max getitem select".split())
_MAX_LAYERS = 64
_TURNS = frozenset("transpose permute swapaxes swapdims movedim moveaxis".split())
_CONVOLUTIONS = frozenset(("conv1d", "conv2d", "conv3d"))
_LAYERS = RECURRENT | {_ATTENTION, "scaled_dot_product_attention"}
_MAX_EARLIER = 80


@dataclass(frozen=True, slots=True)
class RunAlongBatch:
    """A layer, the call that takes one of its results for each row of what it takes as time, and the loss."""

    layer: Call
    last: Call
    loss: Call


def runs_along_batch(facts: TraceIndex) -> Iterator[RunAlongBatch]:
    """Yields these layers, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for layer in above:
            if layer.site in reported:
                continue
            if op_name(layer) in RECURRENT and _takes_second_as_batch(facts, layer):
                last = next((call for call in above if _is_last_of_each_row(facts, call, layer)), None)
            elif op_name(layer) == _ATTENTION and _is_self_attention(facts, layer):
                last = next((call for call in above if _pools_each_row(facts, call, layer)), None)
            else:
                continue
            rows, columns = facts.tensor(layer.inputs[0].tensor).shape[:2]
            loss = loss_of_rows(facts, backward, rows, columns)
            is_meant = last is None or _is_turned_on_purpose(facts, layer) or _has_other(facts, layer, above)
            if last is not None and loss is not None and not is_meant and are_drawn_rows(facts, layer):
                reported.add(layer.site)
                yield RunAlongBatch(layer, last, loss)


def _takes_second_as_batch(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether the shapes show that the first dimension is the time, as without `batch_first=True`."""
    shape = facts.tensor(layer.inputs[0].tensor).shape
    if len(shape) != 3 or len(layer.outputs) < 2 or shape[0] == shape[1] or min(shape[:2]) < 2:
        return False
    states = facts.tensor(layer.outputs[1].tensor).shape
    return len(states) == 3 and states[1] == shape[1]


def _is_last_of_each_row(facts: TraceIndex, call: Call, layer: Call) -> bool:
    """Returns whether a call takes the last item of each row from the results: `states[:, -1]`, or at the lengths."""
    if op_name(call) not in ("getitem", "select") or not call.inputs or not call.outputs:
        return False
    rows = facts.tensor(layer.outputs[0].tensor).shape
    if facts.tensor(call.outputs[0].tensor).shape != (rows[0], rows[2]):
        return False
    number, before = call.inputs[0].tensor, call.index
    while number != layer.outputs[0].tensor:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _SAME_PLACES or not made.inputs or made.index <= layer.index:
            return False
        number, before = made.inputs[0].tensor, made.index
    indices = [facts.tensor(access.tensor).dtype for access in call.inputs[1:]]
    return indices == ["int64", "int64"] or (not indices and _last_place(facts, call))


def _is_self_attention(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether a layer attends along the first dimension of one tensor, which `batch_first=True` would move."""
    shape = facts.tensor(layer.inputs[0].tensor).shape if len(layer.inputs) > 2 else ()
    is_one = len({access.tensor for access in layer.inputs[:3]}) == 1
    return is_one and len(shape) == 3 and shape[0] != shape[1] and min(shape[:2]) > 1


def _pools_each_row(facts: TraceIndex, call: Call, layer: Call) -> bool:
    """Returns whether a call makes one result of each row of what the layer takes as time: `states.mean(1)`."""
    if op_name(call) not in _POOLING or not call.inputs or not call.outputs:
        return False
    rows = facts.tensor(layer.inputs[0].tensor).shape
    before, after = (facts.tensor(each[0].tensor).shape for each in (call.inputs, call.outputs))
    if len(before) != 3 or before[:2] != rows[:2] or after not in ((before[0], before[2]), (before[0], 1, before[2])):
        return False
    waiting, seen = [(call.inputs[0].tensor, call.index)], set[int]()
    for number, limit in waiting:
        made = next(iter(facts.producers(number, limit)), None)
        if made is layer:
            return True
        if made is None or op_name(made) not in _EACH_ROW_ALONE or made.index in seen or len(seen) > _MAX_LAYERS:
            continue
        seen.add(made.index)
        waiting += [(access.tensor, made.index) for access in made.inputs[:2]]
    return False


def _last_place(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a line indexes the second dimension by -1."""
    node = facts.node_at(call.site)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
        first, second, *_ = node.slice.elts
        return isinstance(first, ast.Slice) and written_number(facts, second) == -1
    return isinstance(node, ast.Call) and [written_number(facts, each) for each in node.args[-2:]] == [1, -1]


def _is_turned_on_purpose(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether a line of the script turns the first two dimensions between another layer and this one, so that
    one of them runs along each: the samples are to look at each other."""
    rows, columns = facts.tensor(layer.inputs[0].tensor).shape[:2]
    turned = None
    for _, call in ancestry(facts, layer.inputs[0].tensor, layer.index, _MAX_EARLIER):
        if turned is not None and call.index < turned.index and columns in run_along(facts, call):
            return True
        shapes = [facts.tensor(access.tensor).shape[:2] for access in (*call.inputs[:1], *call.outputs[:1])]
        if turned is None and op_name(call) in _TURNS and shapes == [(columns, rows), (rows, columns)]:
            is_written = facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op)
            turned = call if is_written else None
    return False


def _has_other(facts: TraceIndex, layer: Call, above: tuple[Call, ...]) -> bool:
    """Returns whether another layer of the pass runs along the second dimension of what a layer takes, so that this one
    may let the samples look at each other."""
    rows, columns = facts.tensor(layer.inputs[0].tensor).shape[:2]
    others = _LAYERS if op_name(layer) in RECURRENT else _LAYERS | _CONVOLUTIONS
    return any(
        op_name(call) in others
        and call.site != layer.site
        and rows in facts.tensor(call.inputs[0].tensor).shape
        and run_along(facts, call) == {columns}
        for call in above
    )


def run_along(facts: TraceIndex, call: Call) -> set[int]:
    """Returns the sizes of the dimensions that a layer can run along, as far as its shapes show it."""
    name, shape = op_name(call), facts.tensor(call.inputs[0].tensor).shape if call.inputs else ()
    if not shape:
        return set()
    if name == _ATTENTION:
        return {shape[0]}
    if name == "scaled_dot_product_attention":
        return set(shape[-2:-1])
    if name == "softmax":
        return {shape[-1]}  # of scores, if attention is written out
    if name in _CONVOLUTIONS:
        return set(shape[2:])
    if name not in RECURRENT or len(call.outputs) < 2:
        return set()
    states = facts.tensor(call.outputs[1].tensor).shape
    return {shape[place] for place in (0, 1) if len(shape) < 3 or len(states) < 3 or states[1] == shape[1 - place]}


def loss_of_rows(facts: TraceIndex, backward: Backward, rows: int, columns: int) -> Call | None:
    """Returns a loss of the pass, if each compares as many rows with as many targets, and no target has a dimension of
    the size of the columns."""
    found = None
    for call in loss_calls(facts, backward):
        if op_name(call) not in LOSSES | _DIFFERENCES or len(call.inputs) < 2:
            continue
        shapes = [facts.tensor(access.tensor).shape for access in call.inputs[:2]]
        targets = [
            access.tensor for access in call.inputs[:2] if not facts.requires_grad(access.tensor, call.index - 1)
        ]
        if op_name(call) in _DIFFERENCES and (len(targets) != 1 or shapes[0] != shapes[1] or not shapes[0]):
            continue
        if op_name(call) in _DIFFERENCES and history_lost_at(facts, targets[0], call.index):
            continue  # no target, but what the model has computed
        if len(targets) != 1 or not all(shape and shape[0] == rows and columns not in shape for shape in shapes):
            return None
        found = call
    return found
