"""Finds backward passes whose losses have opposite signs in what the same layer returns, as those of a GAN do."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.turned_signs import sign_in_sum
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_GROWING = frozenset(
    """
    softplus sigmoid logsigmoid log log1p exp expm1 tanh relu leaky_relu elu clamp clip clamp_min unsqueeze getitem
    flatten to clone contiguous double nanmean nansum logsumexp max min
    """.split()
)  # elementwise functions that grow with their argument, and parts of it
_TO_TARGETS = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss"))
_HIGH, _LOW = frozenset(("ones", "ones_like", "new_ones")), frozenset(("zeros", "zeros_like", "new_zeros"))
_FULL = frozenset(("full", "full_like", "new_full"))
_SQUARES, _JOINING = frozenset(("square", "pow")), frozenset(("cat", "stack", "concat"))
_MOST = 400  # calls or passes


def are_opposed(facts: TraceIndex, one: Backward, other: Backward, shared: set[int]) -> bool:
    """Returns whether a layer with shared parameters reads, in the pass `one`, what other layers made while no gradient
    may reach these, and in the pass `other` what they make with a gradient, and the two losses differ in the sign of
    its result."""
    rest = _reached(other) - _reached(one)
    if not rest or not shared <= _reached(one) & _reached(other):
        return False
    first, second = (_signs(facts, each, shared, rest) for each in (one, other))
    return any(len(first[layer] | second[layer]) == 2 and len(first[layer]) == 1 == len(second[layer])
               for layer in first.keys() & second.keys())  # fmt: skip


def is_adversarial(
    facts: TraceIndex, alone: Backward, further: Backward, shared: set[int], passes: Iterable[Backward]
) -> bool:
    """Returns whether the losses of two passes have opposite signs in what a layer returns for results of others, and
    `alone`, or another one of `passes`, also has one for values that others did not make: for the real samples.

    Where a bound is estimated (MINE, NWJ), the signs differ, too, but all of the values are of the encoder.
    """
    rest = _reached(further) - _reached(alone)
    first, second = (_signs(facts, each, shared, rest) for each in (alone, further))
    opposed = [layer for layer in first.keys() & second.keys()
               if len(first[layer] | second[layer]) == 2 and len(second[layer]) == 1]  # fmt: skip
    own = [each for each in passes if not rest & _reached(each)]
    return any(len(first[layer]) == 2 for layer in opposed) or any(
        not _is_computed_from(facts, call, rest, shared)
        for each in (own if opposed else ())
        for call, _ in _layers(facts, each, shared)
    )


def opposed_results(
    facts: TraceIndex, one: Backward, other: Backward, shared: set[int], leaves: set[int]
) -> tuple[Call, Call] | None:
    """Returns the calls that read `shared`, one of each pass, whose results have opposite signs in the two losses, if
    both losses reach the leaves through them, and the pass `other`, or one for `shared` alone, also judges what is not
    made with the leaves."""
    found: list[dict[frozenset[int], list[tuple[Call, int]]]] = []
    reached = map(_reached, facts.backwards[:_MOST])
    has_own = any(shared & each and not leaves & each for each in reached)
    for backward in (one, other):
        layers: dict[frozenset[int], list[tuple[Call, int]]] = {}
        for call, sign in _layers(facts, backward, shared):
            if call.outputs and leaves & graph_leaves(facts, call.outputs[0].tensor, call.index + 1):
                layer = frozenset(access.tensor for access in call.inputs if access.tensor in shared)
                layers.setdefault(layer, []).append((call, sign))
            else:
                has_own |= backward is other
        found.append(layers)
    pairs = [(found[0][layer], found[1][layer]) for layer in found[0] if layer in found[1]]
    signs = [({sign for _, sign in first}, {sign for _, sign in second}) for first, second in pairs]
    if not has_own or not pairs or any(len(first) > 1 or len(second) > 1 or first == second for first, second in signs):
        return None
    return pairs[0][0][0][0], pairs[0][1][0][0]


def _reached(backward: Backward) -> set[int]:
    return {change.tensor for change in backward.gradients}


def _signs(facts: TraceIndex, backward: Backward, shared: set[int], rest: set[int]) -> dict[frozenset[int], set[int]]:
    """Maps layers, by their shared parameters, to the signs that their results on values of others have in the loss."""
    signs: dict[frozenset[int], set[int]] = {}
    for call, sign in _layers(facts, backward, shared):
        layer = frozenset(access.tensor for access in call.inputs if access.tensor in shared)
        if _is_computed_from(facts, call, rest, shared):
            signs.setdefault(layer, set()).add(sign)
    return signs


def _layers(facts: TraceIndex, backward: Backward, shared: set[int]) -> Iterator[tuple[Call, int]]:
    """Yields the last calls that read shared parameters, with the sign of their results in the loss."""
    waiting = [(root.tensor, backward.index, 1) for root in backward.roots]
    for number, before, sign in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or len(waiting) > _MOST:
            continue
        if any(access.tensor in shared for access in call.inputs):
            yield call, sign
            continue
        for place, access in enumerate(call.inputs):
            waiting += [(access.tensor, call.index, sign * step) for step in _slopes(facts, call, place)]


def _slopes(facts: TraceIndex, call: Call, place: int) -> list[int]:
    """Returns 1 if the result of a call grows with an input, -1 if it falls, both if some parts do, and some do not;
    nothing if it is not known."""
    name = op_name(call)
    if name in _TO_TARGETS:
        given = [access.tensor for access in call.inputs[1:2]] if place == 0 else []
        targets = [_target(facts, each, call.index) for number in given for each in _joined(facts, number, call.index)]
        return [] if None in targets else sorted({-1 if (each or 0) > 1 / 2 else 1 for each in targets})
    step = 1 if name in _GROWING and place == 0 else sign_in_sum(facts, call, place)
    if name in _SQUARES:
        step = _side(facts, call)
    elif call.op == "Tensor.sub" and len(call.inputs) == 1:
        step = 1  # minus a number
    return [] if step is None else [step]


def _side(facts: TraceIndex, call: Call) -> int | None:
    """Returns the sign for the square of a difference from a number: below or above 1 / 2, as in a least squares
    GAN."""
    made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
    if len(call.inputs) > 1 or made is None or op_name(made) != "sub":
        return 1 if len(call.inputs) == 1 and made is not None else None
    node = facts.node_at(made.site)
    number = written_number(facts, node.right) if isinstance(node, ast.BinOp) and len(made.inputs) == 1 else None
    return None if number is None else -1 if number > 1 / 2 else 1


def _joined(facts: TraceIndex, number: int, before: int) -> list[int]:
    """Returns the tensors that a tensor was put together from, or the tensor itself."""
    made = next(iter(facts.producers(number, before)), None)
    return [each.tensor for each in made.inputs] if made is not None and op_name(made) in _JOINING else [number]


def _target(facts: TraceIndex, number: int, before: int) -> float | None:
    """Returns the number that a target of a loss consists of."""
    made = next(iter(facts.producers(number, before)), None)
    name = "" if made is None else op_name(made)
    if made is None or name in _HIGH | _LOW:
        return None if made is None else float(name in _HIGH)
    span = facts.span(made.site) if name in _FULL else None
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call):
        return None
    named = [each.value for each in node.keywords if each.arg == "fill_value"]
    return written_number(facts, next(iter([*named, *node.args[1:2]]), None))


def _is_computed_from(facts: TraceIndex, call: Call, rest: set[int], shared: set[int]) -> bool:
    """Returns whether what a layer reads was computed by other parameters, with a graph or without one."""
    waiting = [(access.tensor, call.index) for access in call.inputs if access.tensor not in shared]
    seen = set[int]()
    for number, before in waiting:
        if number in rest:
            return True
        made = next(iter(facts.producers(number, before)), None)
        if made is None or made.index in seen or len(seen) > _MOST:
            continue
        seen.add(made.index)
        waiting += [(access.tensor, made.index) for access in made.inputs if access.tensor not in shared]
    return False
