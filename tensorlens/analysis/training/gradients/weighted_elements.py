"""Finds losses of accumulated passes whose elements the source gives a weight of its own, below the mean of the loss.

`(error * torch.full((n,), n / total)).mean()` divides each pass by its share, as a factor of the mean itself does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Backward, Call

_SCALING = frozenset("mul rmul imul multiply div truediv itruediv divide".split())
_WEIGHTED = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "huber_loss"))
_FILLED = frozenset(("full", "full_like", "new_full"))
_ONES = frozenset(("ones", "ones_like", "new_ones"))
_MOST_CALLS = 200  # between a loss and the layers
_MOST_MAKING = 8  # calls that made a weight


def are_weighted(facts: TraceIndex, passes: tuple[Backward, ...]) -> bool:
    """Returns whether products between the layers and the mean of a loss have one number for all elements of a pass,
    which may be another one in the next pass."""
    weights = [set(_weights(facts, each)) for each in passes]
    return None in weights[0] or set.union(*weights) != set.intersection(*weights)


def _weights(facts: TraceIndex, backward: Backward) -> Iterator[int | None]:
    """Yields the tensors that give all elements one weight; None for a number of the script that may change."""
    waiting, seen = [(backward.roots[0].tensor, backward.index)], set[int]()
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > _MOST_CALLS:
            continue
        seen.add(call.index)
        if any(facts.is_leaf_requiring_grad(access.tensor, call.index - 1) for access in call.inputs):
            continue  # a layer
        own = {access.tensor: facts.requires_grad(access.tensor, call.index - 1) for access in call.inputs}
        others = [each for each, is_trained in own.items() if not is_trained]
        if op_name(call) in _WEIGHTED:
            yield from (each for each in others[1:] if _is_one_number(facts, each, call.index))  # after the target
        elif op_name(call) in _SCALING and not _is_single(facts, number):
            yield from (each for each in others if _is_one_number(facts, each, call.index))
            if len(own) == 1 and _is_changing(facts, call):
                yield None
        waiting += [(each, call.index) for each, is_trained in own.items() if is_trained]


def _is_one_number(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor has one number in all elements, other than ones that nothing scales."""
    if _is_single(facts, number):
        return True
    is_scaled = False
    for _ in range(_MOST_MAKING):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _FILLED:
            return made is not None
        if op_name(made) in _ONES:
            return is_scaled
        if not made.inputs or op_name(made) not in _SCALING | RESHAPING:
            return False
        if any(not _is_single(facts, each.tensor) for each in made.inputs[1:]):
            return False
        is_scaled |= op_name(made) in _SCALING
        number, before = made.inputs[0].tensor, made.index
        if _is_single(facts, number):
            return True
    return False


def _is_single(facts: TraceIndex, number: int) -> bool:
    return all(size == 1 for size in facts.tensor(number).shape)


def _is_changing(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the number that a tensor is multiplied or divided by may be another one in the next pass: the
    source gives it no value, and it is no attribute."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        sides = [node.value]
    else:
        sides = list(node.args) if isinstance(node, ast.Call) else []
    if span is None or not sides:
        return False
    return not any(isinstance(side, ast.Attribute) or _is_known(facts, span.file, side) for side in sides)


def _is_known(facts: TraceIndex, file: str, side: ast.expr) -> bool:
    """Returns whether the source gives a number one value, also by a function of `math`."""
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and ast.unparse(side.func.value) == "math":
        return all(_is_known(facts, file, each) for each in side.args)
    return number_of(facts, file, side) is not None
