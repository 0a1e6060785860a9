"""Finds samples `mean + std * noise`, and the terms of their log-density that a script writes out.

The log-density of such a sample is `-z ** 2 / 2 - log(std)` and a constant, where `z = (sample - mean) / std` is the
noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.factor_signs import factor_sign
from tensorlens.analysis.training.taken_norms import written_power
from tensorlens.records.model import Call

_NOISE = frozenset("randn randn_like normal standard_normal".split())
_SUMS = frozenset("add radd iadd addcmul".split())
_PRODUCTS = frozenset("mul rmul imul".split())
_RATIOS = frozenset("div truediv itruediv true_divide divide".split())
_DIFFERENCES = frozenset("sub isub rsub".split())
_SAME = frozenset("clone contiguous float double to view reshape expand squeeze unsqueeze".split())
_MOST = 6


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """A sample that a call returned as `mean + std * noise`."""

    value: int
    mean: int
    std: int
    noise: int
    made: Call


@dataclass(frozen=True, slots=True)
class DensityTerm:
    """A tensor that a log-density of a sample adds: its sign there, and the call that squares the noise."""

    tensor: int
    sign: int
    square: Call | None = None


def drawn_sample(facts: TraceIndex, made: Call) -> DrawnSample | None:
    """Returns the sample that a call returned by a mean, a width and noise."""
    inputs = [access.tensor for access in made.inputs]
    if op_name(made) not in _SUMS or not made.outputs:
        return None
    if len(inputs) == 3:
        sides = [(inputs[0], inputs[1:], made.index)]
    else:
        products = [(place, next(iter(facts.producers(each, made.index)), None)) for place, each in enumerate(inputs)]
        sides = [
            (inputs[1 - place], [access.tensor for access in product.inputs], product.index)
            for place, product in products
            if len(inputs) == 2 and product is not None and op_name(product) in _PRODUCTS
        ]
    for mean, factors, before in sides:
        noise = [each for each in factors if _is_noise(facts, each, before)]
        if len(factors) == 2 and len(noise) == 1:
            (std,) = (each for each in factors if each != noise[0])
            return DrawnSample(made.outputs[0].tensor, mean, std, noise[0], made)
    return None


def _is_noise(facts: TraceIndex, number: int, before: int) -> bool:
    made = next(iter(facts.producers(number, before)), None)
    is_drawn = made is not None and (op_name(made) in _NOISE or _through(facts, made) == "Distribution.sample")
    return is_drawn and not facts.requires_grad(number, before - 1)


def _through(facts: TraceIndex, call: Call) -> str:
    return facts.trace.sites[call.site].through


def density_terms(facts: TraceIndex, drawn: DrawnSample, last: int) -> Iterator[DensityTerm]:
    """Yields the squares of the noise, and the logarithms of the width, that calls up to some event have computed."""
    yield from _log_widths(facts, drawn)
    for call in facts.calls_between(drawn.made.index - _MOST, last):
        square = squared(facts, call)
        if square is not None and call.outputs and _is_noise_of(facts, drawn, square[0], call.index):
            yield DensityTerm(call.outputs[0].tensor, -square[1], call)
        elif op_name(call) == "log" and call.inputs and call.inputs[0].tensor == drawn.std:
            yield DensityTerm(call.outputs[0].tensor, -1)


def _log_widths(facts: TraceIndex, drawn: DrawnSample) -> Iterator[DensityTerm]:
    """Yields what a width is the exponential of, with and without a factor, as the half of a logarithm of variance."""
    made = next(iter(facts.producers(drawn.std, drawn.made.index)), None)
    if made is None or op_name(made) != "exp":
        return
    number, before = made.inputs[0].tensor, made.index
    yield DensityTerm(number, -1)
    source, sign = unscaled(facts, number, before)
    if source != number:
        yield DensityTerm(source, -sign)


def squared(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns what a call computes the square of, but for factors, and the sign of these: `-0.5 * z * z`."""
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    if name in ("pow", "square", "float_power") and len(inputs) == 1:
        return (unscaled(facts, inputs[0], call.index)[0], 1) if written_power(facts, call) == 2 else None
    if name not in _PRODUCTS or len(inputs) != 2:
        return None
    one, other = (unscaled(facts, each, call.index) for each in inputs)
    return (one[0], one[1] * other[1]) if one[0] == other[0] else None


def unscaled(facts: TraceIndex, number: int, before: int) -> tuple[int, int]:
    """Returns the tensor that a tensor is, but for a factor without a gradient, and the sign of the factor."""
    sign = 1
    for _ in range(_MOST):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or len(made.inputs) > 1:
            break
        if op_name(made) in _PRODUCTS | _RATIOS:
            sign *= factor_sign(facts, made)
        elif op_name(made) == "neg":
            sign = -sign
        elif op_name(made) not in _SAME:
            break
        number, before = made.inputs[0].tensor, made.index
    return number, sign


def _is_noise_of(facts: TraceIndex, drawn: DrawnSample, number: int, before: int) -> bool:
    """Returns whether a tensor is the noise of a sample, or its difference from the mean, also over the width."""
    if number == drawn.noise:
        return True
    for _ in range(2):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        inputs = [access.tensor for access in made.inputs]
        if op_name(made) in _DIFFERENCES:
            return {drawn.value, drawn.mean} == set(inputs)
        if op_name(made) not in _RATIOS | _PRODUCTS:
            return False
        number, before = inputs[0], made.index
    return False
