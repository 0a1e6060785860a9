"""Finds masks that do not hide what they are meant to hide from a loss.

The mean of a loss is one number: a mask that multiplies it comes too late. The least of products with a mask, or of
values that a mask sets to 0, is 0 wherever the mask is, if the other values are never negative.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.counted_masks import FILLS, depends_on_model, filled_value, masked_inputs
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.value_ranges import is_zero_or_one, never_negative
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

PRODUCTS = frozenset(("mul", "rmul", "imul"))
_LOSSES = frozenset("cross_entropy binary_cross_entropy binary_cross_entropy_with_logits kl_div".split())
_SUMS = frozenset(("sum", "mean", "nansum", "nanmean"))
_MAX_STEPS = 8  # calls between a loss and a number that is computed of it
_LEAST = frozenset(("min", "amin", "topk"))
_GREATEST = frozenset(("max", "amax"))
_COMPARING = frozenset("eq ne lt le gt ge".split())
_HIDING = frozenset(
    "pad padded padding valid invalid length lengths mask masked missing absent empty exist exists ignore ignored "
    "hidden observed seen".split()
)
_MAX_NEAR = 24  # tensors that a mask is made of
_SAME_LEAST = frozenset("contiguous clone float double to".split())  # they leave the zeros as they are
_EXPANDING = frozenset("expand expand_as repeat broadcast_to".split())


@dataclass(frozen=True, slots=True)
class LostMask:
    """The call that multiplies by a mask, or sets to 0 by it, the mask, and the call that the mask has no effect on.

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
            if found is None or (not found.late and _is_span(above, call)):
                continue
            if found.product.site not in reported:
                reported.add(found.product.site)
                yield found


def _summed(facts: TraceIndex, above: tuple[Call, ...]) -> set[int]:
    """Returns the tensors that a sum or mean is taken of, also after products with single numbers."""
    found = {access.tensor for call in above if op_name(call) in _SUMS for access in call.inputs}
    for call in above:  # the last comes first
        if op_name(call) in PRODUCTS and found & {access.tensor for access in call.outputs}:
            found |= {access.tensor for access in call.inputs if facts.tensor(access.tensor).shape}
    return found


def _late(facts: TraceIndex, call: Call, summed: set[int]) -> LostMask | None:
    """Returns a product of the mean of a loss and many numbers without a graph, of which the sum or mean is taken."""
    numbers = [access.tensor for access in call.inputs]
    if op_name(call) not in PRODUCTS or len(numbers) != 2 or not summed & {a.tensor for a in call.outputs}:
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
    """Returns a product with a mask of 0 and 1, or a call that sets masked elements to 0, whose least elements a call
    takes, if the others are never negative."""
    if len(call.inputs) != 1 or (op_name(call) == "topk" and not _takes_lowest(facts, call)):
        return None
    product = _before(facts, call)
    numbers = [] if product is None else masked_inputs(facts, product)
    if product is None or len(numbers) != 2:
        return None
    is_fill, filled = op_name(product) in FILLS, filled_value(facts, product)
    if filled is None or filled > 0:
        return None
    for value, mask in (numbers, reversed(numbers)):
        is_mask = not facts.requires_grad(mask, product.index - 1) and (
            facts.tensor(mask).dtype == "bool" if is_fill else is_zero_or_one(facts, mask, product.index)
        )
        if not is_mask or not _is_along(facts, (mask, product), call) or depends_on_model(facts, mask, product.index):
            continue
        is_hiding = not is_fill or _hides(facts, mask, product)
        if is_hiding and never_negative(facts, value, product.index):
            return LostMask(product, mask, call, late=False)
    return None


def _is_span(above: tuple[Call, ...], least: Call) -> bool:
    """Returns whether a pass takes the greatest of the same elements as well: both ends of them count."""
    taken = least.inputs[0].tensor
    return any(op_name(call) in _GREATEST and call.inputs and call.inputs[0].tensor == taken for call in above)


def _hides(facts: TraceIndex, mask: int, fill: Call) -> bool:
    """Returns whether something shows that a mask is to hide elements: a name of padding or of a mask, or a comparison
    of pairs or places. Others may give an element the least value on purpose, as an answer that costs nothing."""
    waiting = [(mask, fill.index)]
    node = facts.node_at(fill.site)
    written = [] if node is None else [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    words = {word for name in written for word in words_of(name)}
    for number, before in waiting:
        words |= set(words_of(facts.name(number, before) or ""))
        made = next(iter(facts.producers(number, before)), None)
        if made is None or len(waiting) > _MAX_NEAR:
            continue
        if op_name(made) == "eye" or (op_name(made) in _COMPARING and len(made.inputs) == 2):
            return True
        waiting += [(access.tensor, made.index) for access in made.inputs]
    return bool(words & _HIDING)


def _before(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that masks what another one takes the least of."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in PRODUCTS or op_name(made) in FILLS:
            return made
        if op_name(made) not in _SAME_LEAST or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _takes_lowest(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    given = [each.value for each in node.keywords if each.arg == "largest"] if isinstance(node, ast.Call) else []
    return any(isinstance(each, ast.Constant) and each.value is False for each in given)


def _is_along(facts: TraceIndex, used: tuple[int, Call], call: Call) -> bool:
    """Returns whether a mask differs along the dimension of which a call takes the least one.

    An index of bools is for the first dimensions; other masks are broadcast to the last ones.
    """
    mask, product = used
    shape, whole = facts.tensor(mask).shape, facts.tensor(call.inputs[0].tensor).shape
    dimension = _dimension(facts, call)
    if dimension is None:
        return shape == whole
    is_index = op_name(product) == "setitem"
    place = dimension - (len(shape) if is_index else len(whole))
    is_there = -len(shape) <= place < 0 and shape[place] == whole[dimension] > 1
    return is_there and not _is_expanded(facts, used, place)


def _dimension(facts: TraceIndex, call: Call) -> int | None:
    if op_name(call) != "topk":
        return written_dimension(facts, call)
    size, span = len(facts.tensor(call.inputs[0].tensor).shape), facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    given = [each.value for each in node.keywords if each.arg == "dim"] if isinstance(node, ast.Call) else []
    number = written_number(facts, given[0]) if given else -1
    return int(number) % size if number is not None and -size <= number < size else None


def _is_expanded(facts: TraceIndex, used: tuple[int, Call], place: int) -> bool:
    """Returns whether a mask repeats one element along a dimension."""
    number, before = used[0], used[1].index
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        shape = facts.tensor(made.inputs[0].tensor).shape
        if op_name(made) in _EXPANDING and (len(shape) < -place or shape[place] == 1):
            return True
        if shape != facts.tensor(number).shape:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False
