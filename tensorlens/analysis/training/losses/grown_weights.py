"""Finds losses whose weights by class grow with the number of targets that passes have of each class.

The weights may come from anywhere, as from NumPy or a list: they are measured, and so are the targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, log, sqrt

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Call
from tensorlens.records.training_values import WeightedTargets

_LEAST_TARGETS, _LEAST_SPREAD = 20, log(1.5)
_POWERS = (1.0, 0.5)  # shares, and their roots
_LOSSES = {True: ("binary_cross_entropy_with_logits",), False: ("cross_entropy", "nll_loss")}


@dataclass(frozen=True, slots=True)
class GrownWeights:
    """A loss with such weights, the call that made them, and what was counted."""

    loss: Call
    made: Call | None
    found: WeightedTargets


def grown_weights(facts: TraceIndex) -> Iterator[GrownWeights]:
    """Yields the loss, if passes have only one with weights by class. The last count decides."""
    found = next(reversed(facts.trace.inspection.weighted_targets), None)
    if found is None or not (_is_ratio(found) if found.is_binary else _is_share(found)):
        return
    backward = next((each for each in facts.backwards if each.started == found.index), None)
    above = () if backward is None else recorded_above(facts, backward)
    losses = [call for call in above if op_name(call) in _LOSSES[found.is_binary] and len(call.inputs) > 2]
    if len(losses) == 1:
        yield GrownWeights(losses[0], facts.creator(losses[0].inputs[-1].tensor), found)


def counted_classes(found: WeightedTargets) -> list[tuple[float, int]]:
    """Returns the weights and counts of the classes with enough targets."""
    return [
        (weight, count)
        for weight, count in zip(found.weights, found.counts, strict=False)
        if count >= _LEAST_TARGETS and weight > 0 and isfinite(weight)
    ]


def _is_share(found: WeightedTargets) -> bool:
    """Returns whether the weights are the counts of the classes by a number, or the roots of such shares.

    Of only two classes, weights that a person may have written, as 1 and 5, are left out.
    """
    pairs = counted_classes(found)
    if len(pairs) < 2 or (len(pairs) == 2 and _are_written([weight for weight, _ in pairs])):
        return False
    first, most = max(pairs, key=lambda pair: pair[1])
    spread = log(max(pairs)[0] / min(pairs)[0])
    powers = _POWERS if len(pairs) > 2 else _POWERS[:1]
    return spread >= _LEAST_SPREAD and any(
        all(abs(log(weight / first) - power * log(count / most)) <= _tolerance(count) for weight, count in pairs)
        for power in powers
    )


def _is_ratio(found: WeightedTargets) -> bool:
    """Returns whether the weight of the ones is their number by that of the zeros, and no number of few digits."""
    zeros, ones = found.counts
    (weight,) = found.weights
    if min(zeros, ones) < _LEAST_TARGETS or weight <= 0 or not isfinite(weight) or _are_written([weight]):
        return False
    is_near = abs(log(weight) - log(ones / zeros)) <= _tolerance(min(zeros, ones))
    return abs(log(weight)) >= _LEAST_SPREAD and is_near


def _tolerance(count: int) -> float:
    """Returns how far apart the logarithms may be: passes may have drawn a part of the data."""
    return 0.02 + 0.5 / sqrt(count)


def _are_written(weights: list[float]) -> bool:
    return all(abs(weight - round(weight, 2)) < 1e-6 * max(weight, 1) for weight in weights)
