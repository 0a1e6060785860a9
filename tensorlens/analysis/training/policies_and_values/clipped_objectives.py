"""Finds clipped policy objectives that take the greater of their two products where the loss subtracts the result."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.falling_weights import may_maximize
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.training.turned_signs import sign_in_sum
from tensorlens.analysis.training.value_ranges import SHAPING
from tensorlens.records.model import Backward, Call

_LEAST, _MOST = frozenset(("minimum", "min", "amin", "fmin")), frozenset(("maximum", "max", "amax", "fmax"))
_LESS, _GREATER = frozenset("lt le less less_equal".split()), frozenset("gt ge greater greater_equal".split())
_CLIPS = frozenset(("clamp", "clip"))
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_PICKING = frozenset("getitem index_select squeeze unsqueeze view reshape float".split())
_JOINS = frozenset(("stack",))
_MAX_CALLS, _MAX_FACTORS = 200, 12


@dataclass(frozen=True, slots=True)
class ClippedObjective:
    """A choice between the products of an estimate with a ratio and with the clipped ratio.

    The loss grows with the result if `sign` is 1. Then the least of the two is taken, else the greatest.
    """

    choice: Call
    clip: Call
    estimate: int
    sign: int


@dataclass(frozen=True, slots=True)
class _Product:
    sign: int
    factors: dict[object, int]  # tensors, each by its key


def unclipped_objectives(training: Training) -> Iterator[ClippedObjective]:
    """Yields these choices, one for each line, in losses that an optimizer makes less."""
    facts, reported = training.facts, set[int]()
    for backward in [] if may_maximize(facts) else examined_passes(facts):
        if not trained_by(training, backward):
            continue
        for choice, sign in _choices(facts, backward):
            compared = _compared(facts, choice)
            if compared is None or compared[1] == (sign < 0) or choice.site in reported:
                continue
            found = _clipped(facts, choice, *(_product(facts, each, choice.index) for each in compared[0]))
            if found is not None:
                reported.add(choice.site)
                yield ClippedObjective(choice, *found, sign)


def _choices(facts: TraceIndex, backward: Backward) -> Iterator[tuple[Call, int]]:
    """Yields the calls that take the least or greatest of two tensors, each with its sign in the loss."""
    waiting, seen = [(root.tensor, backward.index, 1) for root in backward.roots], 0
    for number, before, sign in waiting:
        call, seen = next(iter(facts.producers(number, before)), None), seen + 1
        if call is None or seen > _MAX_CALLS:
            continue
        if op_name(call) in _LEAST | _MOST | {"where"}:
            yield call, sign
            continue
        for place, access in enumerate(call.inputs):
            own = sign_in_sum(facts, call, place)
            if own is not None and facts.requires_grad(access.tensor, call.index - 1):
                waiting.append((access.tensor, call.index, sign * own))


def _compared(facts: TraceIndex, call: Call) -> tuple[tuple[int, int], bool] | None:
    """Returns the two tensors that a call compares element by element, also where it is given both in one tensor, and
    whether it takes the lesser."""
    numbers, is_least = [access.tensor for access in call.inputs], op_name(call) in _LEAST
    made = next(iter(facts.producers(numbers[0], call.index)), None)
    if op_name(call) == "where":
        order = [access.tensor for access in made.inputs] if made is not None and len(numbers) == 3 else []
        name = "" if made is None else op_name(made)
        if name not in _LESS | _GREATER or order not in (numbers[1:], numbers[:0:-1]):
            return None
        numbers, is_least = numbers[1:], (name in _LESS) == (order == numbers[1:])
    elif len(numbers) == 1 and made is not None and op_name(made) in _JOINS and len(made.inputs) == 2:
        result = facts.tensor(call.outputs[0].tensor).shape
        numbers = [each.tensor for each in made.inputs if facts.tensor(each.tensor).shape == result]
    return ((numbers[0], numbers[1]), is_least) if len(numbers) == 2 else None


def _product(facts: TraceIndex, number: int, before: int) -> _Product:
    """Returns the sign and the tensors that a tensor is the product of."""
    sign, waiting = 1, [(number, before)]
    factors: dict[object, int] = {}
    for each, limit in waiting:
        made = next(iter(facts.producers(each, limit)), None)
        name = "" if made is None else op_name(made)
        if made is None or len(waiting) > _MAX_FACTORS or not made.inputs:
            factors[_key(facts, each, made)] = each
        elif name in _PRODUCTS and len(made.inputs) == 2:
            waiting += [(access.tensor, made.index) for access in made.inputs]
        elif (name == "neg" or name in _PRODUCTS or name in SHAPING - {"getitem", "unbind", "select"}) and (
            own := sign_in_sum(facts, made, 0) or (1 if name in SHAPING else None)
        ):
            sign *= own
            waiting.append((made.inputs[0].tensor, made.index))
        else:
            factors[_key(facts, each, made)] = each
    return _Product(sign, factors)


def _key(facts: TraceIndex, number: int, made: Call | None) -> object:
    """Returns what two tensors share that a line picks by the same index, as `adv[rows]` twice: else the tensor."""
    node = None if made is None or op_name(made) not in _PICKING else facts.node_at(made.site)
    return number if node is None or made is None else (made.inputs, ast.unparse(node))


def _clipped(facts: TraceIndex, choice: Call, one: _Product, other: _Product) -> tuple[Call, int] | None:
    """Returns the call that clips a factor of one product, and a factor of both, if the products differ in the clip
    alone."""
    own, others = one.factors.keys() - other.factors.keys(), other.factors.keys() - one.factors.keys()
    common = [number for key, number in one.factors.items() if key in other.factors]
    if len(own) != 1 or len(others) != 1 or not common or one.sign != other.sign:
        return None
    (first,), (second,) = ([each.factors[key] for key in keys] for each, keys in ((one, own), (other, others)))
    for ratio, clipped in ((first, second), (second, first)):
        clip = next(iter(facts.producers(clipped, choice.index)), None)
        made = next(iter(facts.producers(ratio, choice.index)), None)
        is_clip = clip is not None and op_name(clip) in _CLIPS and clip.inputs[0].tensor == ratio
        if clip is not None and is_clip and made is not None and op_name(made) in ("exp", "div", "truediv"):
            return clip, common[0]
    return None
