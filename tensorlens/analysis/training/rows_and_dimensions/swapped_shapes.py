"""Finds reshapes that give a tensor the shape of its transpose: `x.reshape(time, batch, size)` of (batch, time, size).

A reshape keeps the order of the numbers, so the result mixes the samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.rows_and_dimensions.mixed_dimensions import keeps_order, mixed_dimensions
from tensorlens.records.model import Call

_RESHAPING = frozenset("view reshape view_as reshape_as unflatten flatten".split())
_MADE_BY_ORDER = frozenset(
    "stack log_softmax softmax linear lstm gru rnn_tanh rnn_relu embedding dropout layer_norm".split()
)
_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SwappedShape:
    """A reshape, the two dimensions whose sizes it exchanges, and the call that made what it reshapes."""

    reshape: Call
    made: Call
    before: _Shape
    after: _Shape
    dimensions: tuple[int, int]


def swapped_shapes(facts: TraceIndex) -> Iterator[SwappedShape]:
    """Yields these reshapes, one for each line, that no other one turns back and that are no other kind of mix.

    Neighbours of which one size divides the other may be split and merged by a factor, as heads are, and as time steps
    of a stack that are joined two by two. A stack of data may be one sequence that is cut anew.
    """
    calls = [call for call in facts.calls if op_name(call) in _RESHAPING and call.inputs and call.outputs]
    reported = {each.reshape.site for each in mixed_dimensions(facts)} if calls else set()
    pairs = {(_pair(before, after), call.site) for call in calls for before, after in [_shapes(facts, call)]}
    read = {call.inputs[0].tensor for call in calls}
    for call in calls:
        before, after = _shapes(facts, call)
        swapped = _swapped(before, after)
        made = facts.creator(call.inputs[0].tensor)
        if swapped is None or call.site in reported or made is None or op_name(made) not in _MADE_BY_ORDER:
            continue
        reported.add(call.site)
        sizes = before[swapped[0]], before[swapped[1]]
        is_stack = op_name(made) == "stack"
        is_factor = swapped[1] == swapped[0] + 1 and max(sizes) % min(sizes) == 0
        is_factor &= not is_stack or (swapped[1] == len(before) - 1 and sizes[0] > sizes[1])
        is_turned = any(pair == sizes[::-1] for pair, site in pairs if site != call.site)
        if is_stack and not _is_computed(facts, made) and len(after) == 2:
            continue
        if not is_factor and not is_turned and (is_stack or len(after) > 2) and call.outputs[0].tensor not in read:
            yield SwappedShape(call, made, before, after, swapped)


def _is_computed(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call had a result with a graph."""
    state = facts.state(made.outputs[0].tensor, made.index)
    return state is not None and state.requires_grad


def _pair(before: _Shape, after: _Shape) -> tuple[int, int] | None:
    """Returns the sizes of the first two dimensions that a reshape makes the second and the first."""
    swapped = _swapped(before, after)
    return None if swapped is None else (before[swapped[0]], before[swapped[1]])


def _shapes(facts: TraceIndex, call: Call) -> tuple[_Shape, _Shape]:
    return facts.tensor(call.inputs[0].tensor).shape, facts.tensor(call.outputs[0].tensor).shape


def _swapped(before: _Shape, after: _Shape) -> tuple[int, int] | None:
    """Returns the only two dimensions whose sizes two shapes have exchanged, but for last dimensions of 1."""
    before, after = _without_ones(before), _without_ones(after)
    changed = [place for place, sizes in enumerate(zip(before, after, strict=False)) if sizes[0] != sizes[1]]
    if len(before) != len(after) or len(changed) != 2 or keeps_order(before, after):
        return None
    first, second = changed
    is_swap = before[first] == after[second] and before[second] == after[first]
    return (first, second) if is_swap and min(before[first], before[second]) > 1 else None


def _without_ones(shape: _Shape) -> _Shape:
    while shape[2:] and shape[-1] == 1:
        shape = shape[:-1]
    return shape
