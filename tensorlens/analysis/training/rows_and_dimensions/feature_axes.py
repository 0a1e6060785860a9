"""Decides whether parts of a value are features that a layer makes, and not samples or positions of other rows."""

from __future__ import annotations

from collections import Counter

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.row_starts import BY_PLACE
from tensorlens.records.model import Call

_KEEPING = BY_PLACE | frozenset("group_norm rms_norm instance_norm iadd imul glu".split())
_MOVING = frozenset(
    "view reshape unflatten flatten permute transpose movedim moveaxis swapaxes swapdims rearrange squeeze unsqueeze "
    "contiguous".split()
)
_LINEAR = frozenset("linear addmm matmul mm tensordot".split())
_CONVOLUTIONS = frozenset(("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"))
_MOST_CALLS = 60


def are_features(facts: TraceIndex, whole: int, before: int, part: int) -> bool:
    """Returns whether a layer has made the dimension along which a part is cut off."""
    axes = _axes(facts.tensor(whole).shape, facts.tensor(part).shape)
    return bool(axes) and all(_is_of_layer(facts, whole, before, axis) for axis in axes)


def _axes(whole: tuple[int, ...], part: tuple[int, ...]) -> list[int]:
    """Returns the dimensions that a part may be cut off along."""
    if len(whole) == len(part):
        return [axis for axis, sizes in enumerate(zip(whole, part, strict=True)) if sizes[0] != sizes[1]]
    return [axis for axis in range(len(whole)) if whole[:axis] + whole[axis + 1 :] == part]


def _is_of_layer(facts: TraceIndex, whole: int, before: int, axis: int) -> bool:
    """Returns whether a layer made a dimension, which calls of each element, or of the order, may follow."""
    shape, seen = facts.tensor(whole).shape, set[int]()
    waiting = [(whole, before, False)]
    for number, limit, is_moved in waiting:
        made = next(iter(facts.producers(number, limit)), None)
        if made is None or not made.inputs or number in seen or len(seen) > _MOST_CALLS:
            continue
        seen.add(number)
        name = op_name(made)
        if name in _LINEAR | _CONVOLUTIONS:
            others = _others(facts, made)
            if others is None:
                continue
            rest = shape[:axis] + shape[axis + 1 :]
            is_left = not Counter(others) - Counter(rest)
            return is_left if is_moved or name == "tensordot" else axis == _place(made, len(shape))
        if name in _KEEPING:
            size = facts.tensor(number).shape
            same = (each.tensor for each in made.inputs if facts.tensor(each.tensor).shape == size)
            waiting += [(each, made.index, is_moved) for each in same if facts.requires_grad(each, made.index - 1)]
        elif name in _MOVING:
            waiting.append((made.inputs[0].tensor, made.index, True))
    return False


def _place(layer: Call, dimensions: int) -> int:
    """Returns the dimension that a layer makes."""
    if op_name(layer) in _CONVOLUTIONS:
        return 1 if dimensions > 1 else 0
    return dimensions - 1


def _others(facts: TraceIndex, layer: Call) -> tuple[int, ...] | None:
    """Returns the sizes of the dimensions that a layer keeps; None if no parameter multiplies its input."""
    if not any(facts.tensor(each.tensor).type == "Parameter" for each in layer.inputs[1:]):
        return None
    shape = facts.tensor(layer.outputs[0].tensor).shape
    if op_name(layer) in _CONVOLUTIONS:
        return shape[:1] + shape[2:]
    return facts.tensor(layer.inputs[0].tensor).shape[:-1]
