"""Finds reshapes that give a tensor the shape of its transpose: `x.reshape(time, batch, size)` of (batch, time, size).

A reshape keeps the order of the numbers, so the result mixes the samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.mixed_dimensions import keeps_order, mixed_dimensions
from tensorlens.records.model import Call

_RESHAPING = frozenset("view reshape".split())
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
    """Yields these reshapes, one for each line, that no later one turns back and that are no other kind of mix."""
    calls = [call for call in facts.calls if op_name(call) in _RESHAPING and call.inputs and call.outputs]
    shapes = {call.index: _shapes(facts, call) for call in calls}
    reported = {each.reshape.site for each in mixed_dimensions(facts)} if calls else set()
    for call in calls:
        before, after = shapes[call.index]
        swapped = _swapped(before, after)
        made = facts.creator(call.inputs[0].tensor)
        if swapped is None or call.site in reported or made is None or op_name(made) not in _MADE_BY_ORDER:
            continue
        reported.add(call.site)
        if (after, before) not in shapes.values():
            yield SwappedShape(call, made, before, after, swapped)


def _shapes(facts: TraceIndex, call: Call) -> tuple[_Shape, _Shape]:
    return facts.tensor(call.inputs[0].tensor).shape, facts.tensor(call.outputs[0].tensor).shape


def _swapped(before: _Shape, after: _Shape) -> tuple[int, int] | None:
    """Returns the only two dimensions whose sizes two shapes of three dimensions or more have exchanged.

    A last dimension of 1 may be new.
    """
    if len(after) == len(before) + 1 and after[-1] == 1:
        before = (*before, 1)
    changed = [place for place, sizes in enumerate(zip(before, after, strict=False)) if sizes[0] != sizes[1]]
    if len(before) != len(after) or len(after) < 3 or len(changed) != 2 or keeps_order(before, after):
        return None
    first, second = changed
    is_swap = before[first] == after[second] and before[second] == after[first]
    return (first, second) if is_swap and min(before[first], before[second]) > 1 else None
