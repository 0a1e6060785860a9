"""Finds gradients of a prediction that are compared with unscaled values, while the prediction learns scaled ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS
from tensorlens.analysis.training.value_ranges import SAME_VALUES
from tensorlens.records.model import Call

_KEEPING = SAME_VALUES | frozenset(
    "getitem neg stack cat index_select expand detach clone requires_grad contiguous to float double squeeze unsqueeze "
    "view reshape flatten t".split()
)
_COMPARING = ERRORS | {"sub", "rsub"}
_DIVISIONS = frozenset(("div", "truediv", "true_divide"))
_SPREADS = frozenset(("std", "std_mean"))
_SQUARES = frozenset(("var", "var_mean"))
_WRITTEN = _SPREADS | _SQUARES | frozenset("nanstd stdev pstdev variance StandardScaler".split())
_NUMBERS = frozenset("item float tolist numpy".split())
_FLOORS = frozenset("clamp clamp_min maximum add".split())
_MEANS = frozenset(("mean", "std_mean"))
_FILLED = frozenset(("ones", "ones_like"))
_MAX_CALLS, _MAX_ABOVE = 12, 200
_FEWEST = 2  # passes
_Value = tuple[int, Call]  # a tensor and the call that made it


@dataclass(frozen=True, slots=True)
class UnscaledSlope:
    """The comparison of a gradient with unscaled values, that of the prediction with scaled ones, and the division."""

    slope: Call
    value: Call
    division: Call
    spread: Call


def unscaled_slopes(facts: TraceIndex) -> Iterator[UnscaledSlope]:
    """Yields them, each line once, from the second pass on."""
    pairs = [call for call in facts.calls if op_name(call) in _COMPARING and len(call.inputs) == 2 and not call.within]
    slopes = [(call, *found) for call in pairs if (found := _slope(facts, call)) is not None]
    seen: dict[int, int] = {}
    for call, gradient, other in slopes:
        seen[call.site] = seen.get(call.site, 0) + 1
        predicted = _summed(facts, gradient)
        if seen[call.site] != _FEWEST or predicted is None:
            continue
        samples = _source(facts, gradient.inputs[1].tensor, gradient.index)
        for value in pairs:
            sides = [_source(facts, access.tensor, value.index) for access in value.inputs]
            if value.site == call.site or None in sides:
                continue
            ours = [place for place, side in enumerate(sides) if side is not None and side[0] == predicted]
            target = sides[1 - ours[0]] if len(ours) == 1 else None
            spread = None if target is None else _spread(facts, target[1])
            if target is not None and spread is not None and samples is not None:
                is_before = max(other[1].index, samples[1].index) < spread.index
                if (
                    is_before
                    and not _is_scaled_elsewhere(facts, spread)
                    and not _is_divided(facts, other)
                    and not _is_divided(facts, target, spread.inputs[0].tensor)
                ):
                    yield UnscaledSlope(call, value, target[1], spread)
                    break


def _slope(facts: TraceIndex, call: Call) -> tuple[Call, _Value] | None:
    """Returns the gradient that a call compares with other values, and these; None: it compares no gradient."""
    sides = [_source(facts, access.tensor, call.index) for access in call.inputs]
    known = sorted((side for side in sides if side is not None), key=lambda side: side[1].index)
    is_slope = len(known) == len(sides) and known[-1][1].op == "autograd.grad" and known[0][1] is not known[-1][1]
    return (known[-1][1], known[0]) if is_slope else None


def _source(facts: TraceIndex, number: int, before: int) -> _Value | None:
    """Returns the tensor that a value is an item, a view, a copy or the negative of."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None:
            return None
        if op_name(made) not in _KEEPING or not made.inputs:
            return number, made
        number, before = made.inputs[0].tensor, made.index
    return None


def _summed(facts: TraceIndex, gradient: Call) -> int | None:
    """Returns the prediction whose plain sum a gradient is of."""
    number, before = gradient.inputs[0].tensor, gradient.index
    for access in gradient.inputs[2:]:
        made = facts.creator(access.tensor)
        if made is None or op_name(made) not in _FILLED:
            return None
    made = next(iter(facts.producers(number, before)), None)
    if made is not None and op_name(made) == "sum" and made.inputs:
        number, before = made.inputs[0].tensor, made.index
    source = _source(facts, number, before)
    return None if source is None else source[0]


def _is_divided(facts: TraceIndex, value: _Value, data: int | None = None) -> bool:
    """Returns whether values, or the data that they were standardised from, may have been divided or scaled before."""
    number, before = (value[0], value[1].index + 1) if data is None else (data, value[1].index)
    for _, call in ancestry(facts, number, before, _MAX_ABOVE):
        is_single = all(size == 1 for access in call.inputs[1:] for size in facts.tensor(access.tensor).shape)
        if op_name(call) in _SPREADS | _SQUARES or (op_name(call) in _DIVISIONS and is_single):
            return True
    return False


def _is_scaled_elsewhere(facts: TraceIndex, spread: Call) -> bool:
    """Returns whether another line may make a plain number of a deviation, by which the program may have divided."""
    known = {(span.file, span.line) for span in (facts.trace.sites[spread.site].span,)}
    for call in facts.calls:
        span = facts.trace.sites[call.site].span
        if op_name(call) in _SPREADS and (span.file, span.line) not in known:
            made = {access.tensor for access in call.outputs}
            near = facts.calls_between(call.index + 1, call.index + _MAX_ABOVE)
            if not any(op_name(each) in _NUMBERS and made & {access.tensor for access in each.inputs} for each in near):
                known.add((span.file, span.line))
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called_name(node) in _WRITTEN and (file, node.lineno) not in known:
                return True
    return False


def _spread(facts: TraceIndex, division: Call) -> Call | None:
    """Returns the call that computed the deviation by which a call divides values, less their mean."""
    if op_name(division) not in _DIVISIONS or len(division.inputs) != 2:
        return None
    less = _source(facts, division.inputs[0].tensor, division.index)
    spread = _source(facts, division.inputs[1].tensor, division.index)
    while spread is not None and op_name(spread[1]) in _FLOORS and spread[1].inputs:
        spread = _source(facts, spread[1].inputs[0].tensor, spread[1].index)
    if less is None or spread is None or op_name(less[1]) not in ("sub", "rsub") or len(less[1].inputs) != 2:
        return None
    data, mean = (_source(facts, access.tensor, less[1].index) for access in less[1].inputs)
    if data is None or mean is None or op_name(mean[1]) not in _MEANS or op_name(spread[1]) not in _SPREADS:
        return None
    own = _source(facts, spread[1].inputs[0].tensor, spread[1].index)
    return spread[1] if own is not None and own[0] == data[0] else None
