"""Finds out which reshapes may group rows in any way: those of which only sums and means over all are used.

It also finds the permutations that sums over the permuted elements make no difference to.
"""

from __future__ import annotations

from collections.abc import Set
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_SUMS = frozenset("sum mean".split())
_LINEAR = frozenset("add radd iadd mul rmul div truediv neg detach stack item float backward".split())
_TAKES = frozenset(("getitem", "unbind"))
_LOSSES = frozenset("mse_loss l1_loss smooth_l1_loss huber_loss".split())
_RESHAPING = frozenset("view reshape unflatten".split())
_EACH_ALIKE = frozenset(  # of the last dimension, or element by element
    "linear relu gelu tanh sigmoid silu leaky_relu elu softplus layer_norm dropout contiguous float neg".split()
)
_OVER_ALL = frozenset("sum mean amax amin max min logsumexp".split())
_NEAR = 200  # calls before a reshape, among which others with the same sizes may be


def is_order_free(facts: TraceIndex, reshape: Call, until: int, elementwise: Set[str]) -> bool:
    """Returns whether the uses of a reshape, up to an event, end in sums and means over all of its elements, or over
    one row at a time, as over the rows of a minibatch, and no row meets what belongs to another order."""
    before = facts.tensor(reshape.inputs[0].tensor).shape[:1]
    after = facts.tensor(reshape.outputs[0].tensor).shape[:2]
    whole, summed = {reshape.outputs[0].tensor}, set[int]()
    near = facts.calls_between(max(0, reshape.index - _NEAR), until)
    calls = [call for call in near if call.inputs and call.outputs]
    for call in calls:
        shapes = facts.tensor(call.inputs[0].tensor).shape[:1], facts.tensor(call.outputs[0].tensor).shape[:2]
        if op_name(call) in _RESHAPING and shapes == (before, after):
            whole.add(call.outputs[0].tensor)
    for call in calls:
        read = {access.tensor for access in call.inputs}
        if not read & (whole | summed):
            continue
        name, made = op_name(call), {access.tensor for access in call.outputs}
        others = {number for number in read - whole - summed if prod(facts.tensor(number).shape) > 1}
        if call.writes or others or not _is_kept(name, bool(read & summed), bool(read & whole), elementwise):
            return False
        is_shorter = not any(facts.tensor(number).shape for number in made)
        if read & summed or name in _SUMS or (name in _LOSSES | elementwise and is_shorter):
            summed |= made
        else:
            whole |= made
    return bool(summed)


def _is_kept(name: str, reads_summed: bool, reads_whole: bool, elementwise: Set[str]) -> bool:
    """Returns whether a call treats all elements alike; what was summed must not meet them, or be bent, again."""
    if reads_summed:
        return not reads_whole and name in _LINEAR | _SUMS
    return name in _TAKES | _SUMS | _LOSSES | elementwise


def is_order_of_a_sum(facts: TraceIndex, taken: Call) -> bool:
    """Returns whether what a call takes in another order goes through layers that treat each element alike, and then
    into a sum or a maximum over these elements: models of sets may be tested by such an order."""
    number, before = taken.outputs[0].tensor, taken.index
    shape = facts.tensor(number).shape
    sizes = {prod(facts.tensor(access.tensor).shape) for access in taken.inputs[1:]}
    places = [axis for axis, size in enumerate(shape[1:-1], 1) if sizes == {size}]
    if len(places) != 1:
        return False
    kept, axis = shape[: places[0] + 1], places[0]
    read = {number}
    for call in facts.calls_between(before + 1, before + _NEAR):
        if not call.outputs or read.isdisjoint(access.tensor for access in call.inputs):
            continue
        given, out = (facts.tensor(each[0].tensor).shape for each in (call.inputs, call.outputs))
        if op_name(call) in _OVER_ALL:
            return out == (*given[:axis], *given[axis + 1 :])
        if op_name(call) not in _EACH_ALIKE or out[: axis + 1] != kept or len(out) != len(shape):
            return False
        read = {access.tensor for access in call.outputs}
    return False
