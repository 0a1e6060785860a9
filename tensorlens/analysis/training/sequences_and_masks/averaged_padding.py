"""Finds means over padded rows in which a mask has set the padding to 0, and which count the padding all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.counted_masks import FILLS, filled_value, masked_inputs
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.padding_masks import padding_places
from tensorlens.analysis.training.value_ranges import SAME_VALUES
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Backward, Call

_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_QUOTIENTS = frozenset("div truediv mul rmul itruediv imul rtruediv".split())
_OF_PLACES = _PRODUCTS | FILLS
_FREE_OF_SCALE = frozenset("normalize cosine_similarity layer_norm rms_norm batch_norm group_norm argmax norm".split())
_SAME_SHAPES = SAME_VALUES | frozenset("flatten contiguous clone".split())
_KEPT = _SAME_SHAPES | frozenset("neg getitem add radd dropout relu".split())
_MAX_CALLS, _MAX_LATER = 8, 60


@dataclass(frozen=True, slots=True)
class AveragedPadding:
    """A mean, the call that has set the padding to 0, and the mask."""

    mean: Call
    masked: Call
    mask: int
    places: int  # of each row
    is_of_all: bool  # elements, and not of each row


def averaged_padding(facts: TraceIndex) -> Iterator[AveragedPadding]:
    """Yields these means, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        lookups = [call for call in above if op_name(call) == "embedding" and len(call.inputs) > 1]
        for call in above:
            if op_name(call) != "mean" or len(call.inputs) != 1 or call.site in reported:
                continue
            found = _found(facts, call, lookups)
            if found is not None and not _is_corrected(facts, call, backward):
                reported.add(call.site)
                yield found


def _found(facts: TraceIndex, mean: Call, lookups: list[Call]) -> AveragedPadding | None:
    masked = _masked(facts, mean)
    numbers = [] if masked is None else masked_inputs(facts, masked)
    if masked is None or len(numbers) != 2 or filled_value(facts, masked) != 0:
        return None
    for value, mask in (numbers, reversed(numbers)):
        if facts.requires_grad(mask, masked.index - 1) or not facts.requires_grad(value, masked.index - 1):
            continue
        places = padding_places(facts, (mask, masked.index), lookups)
        if places is None or _is_weighted(facts, value, masked.index):
            continue
        is_of_all = not facts.tensor(mean.outputs[0].tensor).shape
        if is_of_all or _runs_along(facts, mean, (mask, masked), places):
            return AveragedPadding(mean, masked, mask, places, is_of_all)
    return None


def _masked(facts: TraceIndex, mean: Call) -> Call | None:
    """Returns the call that masks what a mean is taken of."""
    number, before = mean.inputs[0].tensor, mean.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _OF_PLACES:
            return made
        is_whole = not facts.tensor(mean.outputs[0].tensor).shape  # a mean of all elements is the same in any shape
        if op_name(made) not in (_SAME_SHAPES if is_whole else ("contiguous", "clone", "float")) or not made.inputs:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_weighted(facts: TraceIndex, value: int, before: int) -> bool:
    """Returns whether what is masked has been multiplied or divided by other numbers: they may do what the mean does
    not."""
    made = next(iter(facts.producers(value, before)), None)
    if made is None or op_name(made) not in _QUOTIENTS:
        return False
    return any(not facts.requires_grad(access.tensor, made.index - 1) for access in made.inputs)


def _runs_along(facts: TraceIndex, mean: Call, used: tuple[int, Call], places: int) -> bool:
    """Returns whether a mean of each row runs along the places that a mask has."""
    mask, masked = used
    dimension, shape = written_dimension(facts, mean), facts.tensor(mask).shape
    whole = facts.tensor(mean.inputs[0].tensor).shape
    if dimension is None or whole != facts.tensor((masked.outputs or masked.inputs)[0].tensor).shape:
        return False
    place = dimension - len(whole)
    return dimension > 0 and -len(shape) <= place and shape[place] == whole[dimension] == places


def _is_corrected(facts: TraceIndex, mean: Call, backward: Backward) -> bool:
    """Returns whether other numbers multiply or divide a mean later, or what follows does not depend on its size."""
    numbers = {access.tensor for access in mean.outputs}
    for call in islice(facts.calls_between(mean.index + 1, backward.index), _MAX_LATER):
        others = [access.tensor for access in call.inputs if access.tensor not in numbers]
        if len(others) == len(call.inputs):
            continue
        name = op_name(call)
        if name in _FREE_OF_SCALE:
            return True
        if name in _QUOTIENTS:
            if not others and not _is_by_number(facts, call):
                return True
            if any(not facts.requires_grad(number, call.index - 1) for number in others):
                return True
        elif name not in _KEPT:
            continue
        numbers |= {access.tensor for access in call.outputs}
    return False


def _is_by_number(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a product or quotient has a number that the source writes, and not one that is counted."""
    node = facts.node_at(call.site)
    span = facts.span(call.site)
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return span is not None and any(number_of(facts, span.file, each) is not None for each in sides)
