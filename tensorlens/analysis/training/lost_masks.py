"""Finds masks that do not hide what they are meant to hide from a loss.

The mean of a loss is one number: a mask that multiplies it comes too late. The least of products with a mask is 0
wherever the mask is, if the other factors are never negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.value_ranges import is_zero_or_one, never_negative
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_LOSSES = frozenset("cross_entropy binary_cross_entropy binary_cross_entropy_with_logits kl_div".split())
_SUMS = frozenset(("sum", "mean", "nansum", "nanmean"))
_MAX_STEPS = 8  # calls between a loss and a number that is computed of it
_LEAST = frozenset(("min", "amin"))


@dataclass(frozen=True, slots=True)
class LostMask:
    """The call that multiplies by a mask, the mask, and the call that the mask has no effect on.

    `late` says that this call has made the one number that is multiplied; else it takes the least of the products.
    """

    product: Call
    mask: int
    other: Call
    late: bool


def lost_masks(facts: TraceIndex) -> Iterator[LostMask]:
    """Yields these masks, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        summed = _summed(facts, above)
        for call in above:
            found = _least(facts, call) if op_name(call) in _LEAST else _late(facts, call, summed)
            if found is not None and found.product.site not in reported:
                reported.add(found.product.site)
                yield found


def _summed(facts: TraceIndex, above: tuple[Call, ...]) -> set[int]:
    """Returns the tensors that a sum or mean is taken of, also after products with single numbers."""
    found = {access.tensor for call in above if op_name(call) in _SUMS for access in call.inputs}
    for call in above:  # the last comes first
        if op_name(call) in _PRODUCTS and found & {access.tensor for access in call.outputs}:
            found |= {access.tensor for access in call.inputs if facts.tensor(access.tensor).shape}
    return found


def _late(facts: TraceIndex, call: Call, summed: set[int]) -> LostMask | None:
    """Returns a product of the mean of a loss and many numbers without a graph, of which the sum or mean is taken."""
    numbers = [access.tensor for access in call.inputs]
    if op_name(call) not in _PRODUCTS or len(numbers) != 2 or not summed & {a.tensor for a in call.outputs}:
        return None
    for one, other in (numbers, reversed(numbers)):
        made = _mean_of_loss(facts, one, call.index)
        if made is None or facts.requires_grad(other, call.index - 1):
            continue
        if prod(facts.tensor(other).shape) in _elements(facts, made) - {1}:
            return LostMask(call, other, made, late=True)
    return None


def _mean_of_loss(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call of a loss function that has made one number, of which another number may be computed, as the
    weight of a focal loss is."""
    for _ in range(_MAX_STEPS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not call.inputs or any(facts.tensor(access.tensor).shape for access in call.outputs):
            return None
        if op_name(call) in _LOSSES or op_name(call).endswith("_loss"):
            return call
        if len(call.inputs) > 1:
            return None
        number, before = call.inputs[0].tensor, call.index
    return None


def _elements(facts: TraceIndex, loss: Call) -> set[int]:
    """Returns the number of elements of the target of a loss."""
    return {prod(facts.tensor(access.tensor).shape) for access in loss.inputs[1:2]}


def _least(facts: TraceIndex, call: Call) -> LostMask | None:
    """Returns a product with a mask of 0 and 1 whose least elements a call takes, if the others are never negative."""
    product = next(
        (made for access in call.inputs[:1] for made in facts.producers(access.tensor, call.index)[:1]), None
    )
    if product is None or op_name(product) not in _PRODUCTS or len(call.inputs) != 1 or len(product.inputs) != 2:
        return None
    numbers = [access.tensor for access in product.inputs]
    for value, mask in (numbers, reversed(numbers)):
        is_mask = not facts.requires_grad(mask, product.index - 1) and is_zero_or_one(facts, mask, product.index)
        if is_mask and _is_along(facts, mask, call) and never_negative(facts, value, product.index):
            return LostMask(product, mask, call, late=False)
    return None


def _is_along(facts: TraceIndex, mask: int, call: Call) -> bool:
    """Returns whether a mask has several elements along the dimension of which a call takes the least one."""
    shape, whole = facts.tensor(mask).shape, facts.tensor(call.inputs[0].tensor).shape
    dimension = written_dimension(facts, call)
    if dimension is None:
        return shape == whole
    place = dimension - len(whole)
    return len(shape) >= -place and shape[place] == whole[place] > 1
