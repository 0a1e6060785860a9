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
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_LOSSES = frozenset("cross_entropy binary_cross_entropy binary_cross_entropy_with_logits kl_div".split())
_SUMS = frozenset(("sum", "mean", "nansum", "nanmean"))
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
        summed = {access.tensor for call in above if op_name(call) in _SUMS for access in call.inputs}
        for call in above:
            found = _least(facts, call) if op_name(call) in _LEAST else _late(facts, call, summed)
            if found is not None and found.product.site not in reported:
                reported.add(found.product.site)
                yield found


def _late(facts: TraceIndex, call: Call, summed: set[int]) -> LostMask | None:
    """Returns a product of the mean of a loss and many numbers without a graph, of which the sum or mean is taken."""
    numbers = [access.tensor for access in call.inputs]
    if op_name(call) not in _PRODUCTS or len(numbers) != 2 or not summed & {a.tensor for a in call.outputs}:
        return None
    for one, other in (numbers, reversed(numbers)):
        made = next(iter(facts.producers(one, call.index)), None)
        many = prod(facts.tensor(other).shape) > 1 and not facts.requires_grad(other, call.index - 1)
        if made is not None and many and _is_mean_of_loss(facts, made):
            return LostMask(call, other, made, late=True)
    return None


def _is_mean_of_loss(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call of a loss function has made one number of several elements."""
    name = op_name(call)
    if not (name in _LOSSES or name.endswith("_loss")) or facts.tensor(call.outputs[0].tensor).shape:
        return False
    return any(prod(facts.tensor(access.tensor).shape) > 1 for access in call.inputs)


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
        if is_mask and facts.tensor(mask).shape and never_negative(facts, value, product.index):
            return LostMask(product, mask, call, late=False)
    return None
