"""Finds points that are mixed of two samples by random numbers: `fake + e * (real - fake)`, however it is written.

The sums and products of a point are multiplied out. It is a mixture if it is `a + e * (b - a)`, with a draw `e`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_DRAWS = frozenset("rand rand_like uniform".split())
_FROM_OUTSIDE = frozenset("from_numpy as_tensor tensor FloatTensor".split())
_NOISE = _DRAWS | frozenset("randn randn_like normal".split())
_SAME = frozenset(
    "detach clone requires_grad to float double type type_as contiguous view view_as reshape unsqueeze squeeze "
    "expand expand_as cpu cuda broadcast_to positive".split()
)
_ONES = frozenset(("ones", "ones_like", "new_ones"))
_ADDED = {"add": 1.0, "radd": 1.0, "iadd": 1.0, "sub": -1.0, "isub": -1.0}
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_MOST_DEEP, _MOST_TERMS = 14, 16
_MOST_ABOVE, _MOST_LATER = 200, 200
_Terms = dict[tuple[int, ...], float]  # the factors of each product, which are tensors, and how often it is added


@dataclass(frozen=True, slots=True)
class MixedPoint:
    """The call that returns the mixture, the draw of the shares, how many of these a sample has, and their shape."""

    call: Call
    draw: Call
    shares: int
    shape: tuple[int, ...]


def mixed_point(facts: TraceIndex, number: int, before: int) -> MixedPoint | None:
    """Returns the mixture that a tensor is, if its shares differ among the elements of a sample."""
    made = _uncopied(facts, number, before)
    if made is None or not made.outputs:
        return None
    search = _Products(facts, made.outputs[0].tensor)
    terms = search.of(made.outputs[0].tensor, made.index + 1)
    for share, draw in search.draws.items():
        first = {key: value for key, value in terms.items() if share not in key}
        step = {_without(key, share): value for key, value in terms.items() if key.count(share) == 1}
        rest = {key: value for key, value in step.items() if key not in first}
        is_mixture = bool(first) and bool(rest) and all(step.get(key) == -value for key, value in first.items())
        count = _shares(facts, draw, search.uses[share], made) if is_mixture else 0
        if count > 1 and _are_two_samples(facts, made, (first, rest)):
            return MixedPoint(made, draw, count, _shape(facts, draw, search.uses[share], made))
    return None


def _uncopied(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that has made a tensor, or the one that it is a copy of."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MOST_DEEP):
        if made is None or not _is_copy(made):
            break
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    return made


def _is_copy(call: Call) -> bool:
    return (op_name(call) in _SAME or call.op.endswith(".data.__get__")) and bool(call.inputs)


def _without(key: tuple[int, ...], share: int) -> tuple[int, ...]:
    return tuple(each for each in key if each != share)


class _Products:
    """Multiplies out what a tensor is computed by. `uses` are the draws as the products have them."""

    def __init__(self, facts: TraceIndex, root: int) -> None:
        self.facts, self.root = facts, root
        self.draws: dict[int, Call] = {}
        self.uses: dict[int, int] = {}
        self.known: dict[tuple[int, int], _Terms] = {}

    def of(self, number: int, before: int, left: int = _MOST_DEEP) -> _Terms:
        made = next(iter(self.facts.producers(number, before)), None)
        if made is None or left == 0 or not made.outputs:
            return {(number,): 1.0}
        key = number, made.index
        if key not in self.known:
            self.known[key] = self._of_call(number, made, left)
        return self.known[key]

    def _of_call(self, number: int, made: Call, left: int) -> _Terms:
        facts = self.facts
        if _is_draw(facts, made):
            self.draws[number] = made
            self.uses.setdefault(number, number)
            return {(number,): 1.0}
        if op_name(made) in _ONES:
            return {(): 1.0}
        if number != self.root and is_given_to_layer(facts, number, made):
            return {(number,): 1.0}
        if _is_copy(made):
            found = self.of(made.inputs[0].tensor, made.index, left - 1)
            if len(found) == 1 and len(*found) == 1:
                self.uses[(*found,)[0][0]] = number  # as it is reshaped
            return found
        return self._of_arithmetic(made, left - 1) or {(number,): 1.0}

    def _of_arithmetic(self, made: Call, left: int) -> _Terms | None:
        """Returns the products that a call adds up; None if it is no sum or product, or adds up too many."""
        name, inputs = op_name(made), [access.tensor for access in made.inputs]
        if name not in (*_ADDED, *_PRODUCTS, "rsub", "neg", "lerp", "addcmul") or len(inputs) > 3:
            return None
        parts = [self.of(each, made.index, left) for each in inputs]
        if len(inputs) == 1 and name != "neg":
            given = _given_number(self.facts, made)
            if given is None:
                return None
            parts.append({(): given} if given else {})
        found: _Terms | None = None
        if name == "neg":
            found = _plus({}, parts[0], -1.0)
        elif name == "rsub" and len(parts) == 2:
            found = _plus(parts[1], parts[0], -1.0)
        elif name in _PRODUCTS and len(parts) == 2:
            found = _times(*parts)
        elif name in _ADDED and len(parts) == 2 and not _has_alpha(self.facts, made):
            found = _plus(parts[0], parts[1], _ADDED[name])
        elif len(parts) == 3 and not _has_alpha(self.facts, made):
            one, other, last = parts
            step = _times(_plus(other, one, -1.0), last) if name == "lerp" else _times(other, last)
            found = _plus(one, step, 1.0)
        return found if found is not None and len(found) <= _MOST_TERMS else None


def _plus(one: _Terms, other: _Terms, sign: float) -> _Terms:
    found = dict(one)
    for key, value in other.items():
        found[key] = found.get(key, 0.0) + sign * value
    return {key: value for key, value in found.items() if value}


def _times(one: _Terms, other: _Terms) -> _Terms:
    found: _Terms = {}
    for key, value in one.items():
        for further, weight in other.items():
            product = tuple(sorted((*key, *further)))
            found[product] = found.get(product, 0.0) + value * weight
    return {key: value for key, value in found.items() if value}


def _given_number(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that the source writes beside the tensor of a sum or a product."""
    node, span = facts.node_at(call.site), facts.span(call.site)
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        sides = [node.value]
    elif isinstance(node, ast.Call):
        sides = node.args
    for side in sides if span is not None else ():
        number = written_number(facts, side)
        number = number_of(facts, span.file, side) if number is None and span is not None else number
        if number is not None:
            return number
    return None


def _has_alpha(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    return isinstance(node, ast.Call) and any(keyword.arg in ("alpha", "value") for keyword in node.keywords)


def _is_draw(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call draws random numbers, also by a distribution or by NumPy."""
    if op_name(call) in _DRAWS or facts.trace.sites[call.site].through.endswith((".sample", ".rsample")):
        return True
    node = facts.node_at(call.site) if op_name(call) in _FROM_OUTSIDE and not call.inputs else None
    called = (each.func for each in ast.walk(node) if isinstance(each, ast.Call)) if node is not None else ()
    return any(
        isinstance(each, ast.Attribute) and each.attr in ("rand", "random", "uniform", "beta") for each in called
    )


def _shares(facts: TraceIndex, draw: Call, used: int, mixed: Call) -> int:
    """Returns how many numbers of a draw belong to one sample, whichever dimension the samples are in.

    As many as the elements of a sample where the draw has the shape of the mixture. A smaller draw counts if it has
    several numbers along the last dimension and along another one, as one for each pixel has.
    """
    shape, padded = facts.tensor(mixed.outputs[0].tensor).shape, _shape(facts, draw, used, mixed)
    if padded == shape:
        return prod(shape[1:])
    is_known = len(padded) == len(shape) and all(each in (1, size) for each, size in zip(padded, shape, strict=True))
    is_spread = is_known and sum(size > 1 for size in padded) > 1 and padded[-1] > 1
    return prod(padded[1:]) if is_spread else 0


def _shape(facts: TraceIndex, draw: Call, used: int, mixed: Call) -> tuple[int, ...]:
    """Returns the shape of shares, with as many dimensions as the mixture has."""
    shape, own = facts.tensor(mixed.outputs[0].tensor).shape, facts.tensor(used).shape
    drawn = facts.tensor(draw.outputs[0].tensor).shape
    if prod(own) != prod(drawn):
        own = drawn  # expanded later
    return (*(1 for _ in range(len(shape) - len(own))), *own)


def _are_two_samples(facts: TraceIndex, mixed: Call, sides: tuple[_Terms, _Terms]) -> bool:
    """Returns whether the sides of a mixture are two samples: a sample and the same with noise, or noise, are not."""
    shape = facts.tensor(mixed.outputs[0].tensor).shape
    above = list[set[int]]()
    for side in sides:
        numbers = {number for key in side for number in key}
        if not numbers or all(_is_noise(facts, number, mixed.index) for number in numbers):
            return False
        known = set(numbers)
        for number in numbers:
            found = ancestry(facts, number, mixed.index, _MOST_ABOVE)
            known |= {access.tensor for _, call in found for access in call.inputs}
        above.append({each for each in known if facts.tensor(each).shape == shape})
    return not above[0] & above[1]


def _is_noise(facts: TraceIndex, number: int, before: int) -> bool:
    made = next(iter(facts.producers(number, before)), None)
    is_drawn = made is not None and op_name(made) in _NOISE
    return made is not None and is_drawn and not is_given_to_layer(facts, number, made)


def is_given_to_layer(facts: TraceIndex, number: int, draw: Call) -> bool:
    """Returns whether a layer with weights is given what a call made, as it is given samples."""
    for call in _after(facts, draw):
        inputs = [access.tensor for access in call.inputs]
        if number in inputs and any(facts.is_leaf_requiring_grad(each, call.index - 1) for each in inputs):
            return True
    return False


def _after(facts: TraceIndex, call: Call) -> Iterator[Call]:
    return islice(facts.calls_between(call.index + 1), _MOST_LATER)
