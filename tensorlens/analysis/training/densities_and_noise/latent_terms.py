"""Finds the divergence of a normal distribution from the standard one that a loss writes out, and what samples it.

The divergence is `0.5 * (mu.square() + log_variance.exp() - 1 - log_variance)`: its exponential is the variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose, prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.summand_weights import Summand, factor_of, reduced_error
from tensorlens.analysis.training.taken_norms import written_power
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "rmul"))
_SUMS = frozenset(("add", "radd"))
_DRAWS = frozenset("randn randn_like normal normal_".split())


@dataclass(frozen=True, slots=True)
class Divergence:
    """Such a divergence, with one of its exponentials."""

    mean: int
    log_variance: int
    variance: Call  # the exponential
    summand: Summand  # the one of it


def divergences(facts: TraceIndex, found: list[Summand]) -> Iterator[Divergence]:
    """Yields those of which the squares of the means, the exponentials and the logarithms have the same weight."""
    squares = [each for each in found if each.made is not None and written_power(facts, each.made) == 2]
    for each in found if squares else ():
        if each.made is None or op_name(each.made) != "exp" or not each.weight:
            continue
        number = each.made.inputs[0].tensor
        if not any(one.tensor == number and _is_near(one, each, -1) for one in found):
            continue
        shape = facts.tensor(number).shape
        means = [one for one in squares if _is_near(one, each, 1) and facts.tensor(one.tensor).shape == shape]
        if len({one.tensor for one in means}) == 1 and means[0].made is not None:
            yield Divergence(means[0].made.inputs[0].tensor, number, each.made, each)


def _is_near(one: Summand, other: Summand, sign: int) -> bool:
    return one.unknown == other.unknown and isclose(one.weight, sign * other.weight, rel_tol=1e-6)


def sample_with(facts: TraceIndex, calls: tuple[Call, ...], found: Divergence) -> tuple[Call, Call] | None:
    """Returns the product with noise that a line adds to the mean, if its factor is the variance, or its logarithm, and
    the sum."""
    made = {access.tensor: call for call in calls for access in call.outputs}
    for call in calls:
        numbers = [access.tensor for access in call.inputs]
        if op_name(call) not in _SUMS or found.mean not in numbers or len(numbers) != 2:
            continue
        product = made.get(next((number for number in numbers if number != found.mean), -1))
        if product is None or op_name(product) not in _PRODUCTS or len(product.inputs) != 2:
            continue
        factors = [access.tensor for access in product.inputs]
        noise = [number for number in factors if _is_noise(facts, number, product.index)]
        deviation = [number for number in factors if number not in noise]
        if len(noise) == 1 and len(deviation) == 1 and _is_variance(made, deviation[0], found):
            return product, call
    return None


def _is_noise(facts: TraceIndex, number: int, before: int) -> bool:
    made = next(iter(facts.producers(number, before)), None)
    return made is not None and op_name(made) in _DRAWS


def _is_variance(made: dict[int, Call], number: int, found: Divergence) -> bool:
    """Returns whether a tensor is the exponential of the logarithm, maybe times a number, or the logarithm itself."""
    call = made.get(number)
    if call is not None and op_name(call) in _PRODUCTS and len(call.inputs) == 1:
        call = made.get(call.inputs[0].tensor)
    is_exponential = call is not None and op_name(call) == "exp" and call.inputs[0].tensor == found.log_variance
    return is_exponential or number == found.log_variance


@dataclass(frozen=True, slots=True)
class Reductions:
    """The error of a reconstruction, of which a loss takes another reduction than of the divergence."""

    error: Call
    is_mean: bool  # of the error over the elements of a sample; else of the divergence
    elements: int


def unequal_reductions(facts: TraceIndex, found: list[Summand], divergence: Divergence) -> Reductions | None:
    """Returns these if one of both is a mean over the elements of a sample, the other a sum, and no number weighs them.

    A weight, as of a beta-VAE, may be there to balance them, so only the half of the divergence is known.
    """
    shape = facts.tensor(divergence.log_variance).shape
    errors = [(each, error) for each in found if (error := _error(facts, each, divergence)) is not None]
    if len(errors) != 1 or len(shape) < 2:
        return None
    each, (call, weight, elements) = errors[0]
    sizes = facts.tensor(call.inputs[0].tensor).shape
    rows, latent, own = shape[0], prod(shape[1:]), elements // shape[0]
    if sizes[:1] != shape[:1] or rows in (1, latent, own) or 1 in (latent, own):
        return None  # the sizes do not say which axes a call reduces
    if not _are_only_halved(facts, each, divergence.summand, rows):
        return None
    ratio = weight / divergence.summand.weight
    whole = None if facts.tensor(each.tensor).shape else not isclose(weight, each.weight)  # of an error function
    kinds = (_is_mean(facts, each, own, rows, whole), _is_mean(facts, divergence.summand, latent, rows, None))
    if kinds == (True, False) and isclose(ratio, 2 / own, rel_tol=1e-6):
        return Reductions(call, True, own)
    if kinds == (False, True) and isclose(ratio, 2 * latent, rel_tol=1e-6):
        return Reductions(call, False, latent)
    return None


def _error(facts: TraceIndex, each: Summand, divergence: Divergence) -> tuple[Call, float, int] | None:
    error = reduced_error(facts, each)
    return None if error is None or error[0].inputs[0].tensor == divergence.mean else error


def _are_only_halved(facts: TraceIndex, error: Summand, divergence: Summand, rows: int) -> bool:
    """Returns whether the ways of the two hold no factor of their own but a half of the divergence and the rows."""
    if error.unknown != divergence.unknown:
        return False
    numbers = [
        [_factor(facts, call, rows) for call in one.factors if call not in other.factors]
        for one, other in ((error, divergence), (divergence, error))
    ]
    halves = [number for number in numbers[1] if number != 1]
    return all(number == 1 for number in numbers[0]) and len(halves) == 1 and abs(halves[0]) == 0.5


def _factor(facts: TraceIndex, call: Call, rows: int) -> float:
    """Returns what a call multiplies by, 1 for a division by the number of rows; 0 if that is not known."""
    number, is_row_count = factor_of(facts, call)
    is_ratio = "div" in op_name(call)
    if is_row_count or (is_ratio and number == rows):
        return 1.0
    return 0.0 if not number or number == 1 else 1 / number if is_ratio else number


def _is_mean(facts: TraceIndex, each: Summand, elements: int, rows: int, whole: bool | None) -> bool | None:
    """Returns whether the way to a summand reduces the elements of a sample by a mean; None if that is not clear.

    `whole` says it of an error function that reduces all of them itself.
    """
    if whole is not None:
        return whole
    left = elements * rows
    for call in reversed(each.way):
        name, size = op_name(call), prod(facts.tensor(call.outputs[0].tensor).shape)
        if name not in ("mean", "sum"):
            continue
        dropped = prod(facts.tensor(call.inputs[0].tensor).shape) // max(size, 1)
        if dropped in (elements, left):
            return name == "mean"
        if dropped not in (1, rows):
            return None
        left //= dropped
    return None
