"""Finds losses of a flow that count the logarithm of a scale with the wrong sign, or not once for each element.

`z = x * s.exp() + t` stretches by `s.exp()`: the log-density of x is that of z, plus s, summed over the elements of a
sample. With the other sign the loss has no lowest value, and with a mean in place of a sum the result is no density.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose, prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above, recorded_from
from tensorlens.analysis.training.summand_weights import Summand, summands, written_square
from tensorlens.records.model import Call

_PRODUCTS = frozenset("mul rmul imul".split())
_RATIOS = frozenset("div truediv itruediv".split())
_DENSITIES = "Normal MultivariateNormal LowRankMultivariateNormal Independent Laplace StudentT Cauchy Gumbel".split()
_LOG_DENSITIES = frozenset(f"{name}.log_prob" for name in _DENSITIES)
_SUMS = frozenset("add radd iadd sub isub rsub subtract addcmul addcdiv lerp".split())
_CURVES = frozenset("tanh sigmoid exp neg logsigmoid softplus".split())
_REPEATED = _CURVES | _PRODUCTS | _RATIOS | _SUMS
_LOGS = frozenset(("exp", "log", "logsigmoid"))
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class LogDeterminant:
    """A logarithm of a scale that a loss adds to a log-density."""

    scale: int  # the tensor whose exponential is the scale
    grows: bool  # the scale grows with it
    scaled: Call  # the product or ratio
    density: Call  # the log-density, or a square
    weight: float  # in units of the right one
    added: Call  # the first call on the way to the loss
    joined: Call  # adds it to the log-density, or subtracts it


@dataclass(frozen=True, slots=True)
class _Density:
    call: Call
    weight: float  # of a log-density
    unknown: tuple[int, ...]
    above: frozenset[int]  # the calls that its values were computed by


def log_determinants(facts: TraceIndex) -> Iterator[LogDeterminant]:
    """Yields those of which each way to the loss is known, where all have the same relation to one density."""
    for backward in examined_passes(facts, with_asked=True):
        calls = recorded_above(facts, backward)
        scales = list(_scales(facts, calls)) if any(op_name(call) in _LOGS for call in calls) else []
        found = list(summands(facts, backward)) if scales else []
        density = _density(facts, found) if found else None
        if density is None:
            continue
        ways, same = defaultdict[int, list[Summand]](list), _same_values(facts, calls)
        for each in found:
            ways[same.get(each.tensor, each.tensor)].append(each)
        for number, grows, scaled in scales:
            own = ways.get(same.get(number, number), [])
            if not own or scaled.index not in density.above or {each.unknown for each in own} != {density.unknown}:
                continue
            if _is_error(facts, calls, scaled, density.call):
                continue
            repeats = prod(facts.tensor(scaled.outputs[0].tensor).shape) / max(prod(facts.tensor(number).shape), 1)
            ratio = sum(each.weight for each in own) / density.weight / repeats * (1 if grows else -1)
            added = _reduces(own)
            joined = _joined(facts, calls, density.call)
            if added is not None and joined is not None:
                yield LogDeterminant(number, grows, scaled, density.call, ratio, added, joined)


def _scales(facts: TraceIndex, calls: tuple[Call, ...]) -> Iterator[tuple[int, bool, Call]]:
    """Yields the tensors that products with their exponentials stretch or shrink something by."""
    powers: dict[int, tuple[int, bool]] = {}
    for call in calls:
        if op_name(call) == "log" and call.inputs and call.outputs:
            powers.setdefault(_before_abs(facts, call), (call.outputs[0].tensor, True))
        if op_name(call) == "exp" and call.inputs and call.outputs:
            number, grows = call.inputs[0].tensor, True
            made = next(iter(facts.producers(number, call.index)), None)
            if made is not None and op_name(made) == "neg":
                number, grows = made.inputs[0].tensor, False
            powers[call.outputs[0].tensor] = number, grows
    powers |= _of_sigmoids(calls)
    uses = defaultdict[int, list[tuple[bool, Call]]](list)
    for call in calls:
        inputs = [access.tensor for access in call.inputs][op_name(call) == "addcmul" :]
        for place, each in enumerate(inputs):
            if each in powers and len(inputs) == 2 and inputs[0] != inputs[1]:
                number, grows = powers[each]
                is_ratio = op_name(call) in _RATIOS and place == 1
                if is_ratio or op_name(call) in _PRODUCTS | {"addcmul"}:
                    uses[number].append((grows is not is_ratio, call))
    for number, found in uses.items():
        if len(found) == 1:
            yield number, *found[0]


def _of_sigmoids(calls: tuple[Call, ...]) -> dict[int, tuple[int, bool]]:
    """Returns the sigmoids of what `logsigmoid()` takes the logarithm of the sigmoid of, each with this logarithm."""
    logs = {call.inputs[0].tensor: call.outputs[0].tensor for call in calls if op_name(call) == "logsigmoid"}
    sigmoids = (call for call in calls if op_name(call) == "sigmoid" and call.inputs[0].tensor in logs)
    return {call.outputs[0].tensor: (logs[call.inputs[0].tensor], True) for call in sigmoids}


def _same_values(facts: TraceIndex, calls: tuple[Call, ...]) -> dict[int, int]:
    """Maps the results of calls that repeat another one, with the same tensors and in the same words, to the first."""
    first, same = dict[tuple[object, ...], int](), dict[int, int]()
    for call in sorted(calls, key=lambda each: each.index):
        node = facts.node_at(call.site)
        if len(call.outputs) != 1 or call.writes or op_name(call) not in _REPEATED or not isinstance(node, ast.expr):
            continue
        inputs = tuple(same.get(access.tensor, access.tensor) for access in call.inputs)
        words = ast.unparse(node) if len(inputs) == 1 and op_name(call) not in _CURVES else ""
        number = call.outputs[0].tensor
        same[number] = first.setdefault((op_name(call), *inputs, words), number)
    return same


def _before_abs(facts: TraceIndex, call: Call) -> int:
    """Returns the scale that a call takes the logarithm of, or of the size of."""
    number = call.inputs[0].tensor
    made = next(iter(facts.producers(number, call.index)), None)
    return made.inputs[0].tensor if made is not None and op_name(made) == "abs" and made.inputs else number


def _density(facts: TraceIndex, found: list[Summand]) -> _Density | None:
    """Returns the only log-density, or square, that a loss adds up."""
    densities: dict[int, _Density] = {}
    for each in found:
        call = each.made
        if call is None:
            continue
        through = facts.trace.sites[call.site].through
        if through in _LOG_DENSITIES:
            weight = each.weight
        else:
            square = written_square(facts, call) if facts.tensor(each.tensor).shape else None
            if square is None:
                continue
            weight = -each.weight * square[1] / _HALF
        if call.index in densities:
            return None
        read = [(access.tensor, call.index) for access in call.inputs]
        above = frozenset(made.index for made in recorded_from(facts, read))
        densities[call.index] = _Density(call, weight, each.unknown, above)
    only = next(iter(densities.values()), None)
    return only if len(densities) == 1 and only is not None and only.weight else None


def _is_error(facts: TraceIndex, calls: tuple[Call, ...], scaled: Call, density: Call) -> bool:
    """Returns whether a square may be that of an error: a sum after the scaling has an untrained tensor, a target."""
    if facts.trace.sites[density.site].through in _LOG_DENSITIES:
        return False
    values = {access.tensor for access in scaled.outputs}
    for call in sorted(calls, key=lambda each: each.index):
        inputs = [access.tensor for access in call.inputs]
        if scaled.index < call.index < density.index and values & set(inputs):
            values |= {access.tensor for access in call.outputs}
            if op_name(call) in _SUMS and not all(facts.requires_grad(each, call.index - 1) for each in inputs):
                return True
    return False


def _reduces(own: list[Summand]) -> Call | None:
    """Returns the first call on the way of a tensor to the loss that reduces it, or else the first."""
    ways = [each.way[::-1] for each in own if each.way]
    reducing = [call for call in (ways[0] if ways else ()) if op_name(call) in ("mean", "sum")]
    return next(iter((*reducing, *(ways[0] if ways else ()))), None)


def _joined(facts: TraceIndex, calls: tuple[Call, ...], density: Call) -> Call | None:
    """Returns the first call that adds something with a history to a log-density."""
    values = {access.tensor for access in density.outputs}
    for call in sorted(calls, key=lambda each: each.index):
        inputs = [access.tensor for access in call.inputs]
        if call.index > density.index and values & set(inputs):
            if sum(facts.requires_grad(number, call.index - 1) for number in inputs) > 1:
                return call
            values |= {access.tensor for access in call.outputs}
    return None


def has_other_sign(found: LogDeterminant) -> bool:
    """Returns whether a weight is the right one but for its sign. Another one may be that of a penalty."""
    return isclose(found.weight, -1, rel_tol=1e-6)


def reduction_fault(facts: TraceIndex, found: LogDeterminant) -> str:
    """Returns in words by what a weight is too small or too large; empty if it is none of the known."""
    shape, ratio, added = facts.tensor(found.scale).shape, abs(found.weight), found.added
    if not shape or not added.outputs:
        return ""
    left = prod(facts.tensor(added.outputs[0].tensor).shape)
    size = prod(shape) // max(left, 1)
    scaled = facts.tensor(found.scaled.outputs[0].tensor).shape
    is_of_row = len(shape) == len(scaled) and left == 1 and shape[0] == scaled[0] and isclose(ratio, shape[0] / size)
    if op_name(added) == "mean" and is_of_row and size // shape[0] > 1:
        return f"by 1/{size // shape[0]:,} of the log-density, as it takes the mean over the elements of a row, too"
    if op_name(added) == "mean" and size > 1 and isclose(ratio, 1 / size, rel_tol=1e-6):
        return f"by 1/{size:,} of the log-density, as it takes the mean over {size:,} elements in place of their sum"
    if op_name(added) == "sum" and left == 1 < shape[0] and isclose(ratio, shape[0], rel_tol=1e-6):
        return f"by {shape[0]:,} times the log-density, as the sum over all {shape[0]:,} rows is added to each of them"
    return ""
