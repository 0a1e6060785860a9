"""Finds focal losses whose factor is computed from the mean of a loss: `(1 - exp(-ce)) ** gamma * ce`, `ce` a mean.

The factor is there to weigh each sample by how well it is classified; of a mean it is one number for all samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.losses.written_losses import reduces_by_mean
from tensorlens.analysis.training.pair_tables import made_by, shape_of
from tensorlens.records.model import Call

_LOSSES = frozenset("cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits".split())
_PRODUCTS = frozenset("mul rmul imul multiply".split())
_POWERS = frozenset("pow square".split())
_CONSTANT = frozenset("mul rmul imul multiply div truediv detach clone clamp clamp_min clamp_max mean squeeze".split())
_MOST_CALLS = 12


@dataclass(frozen=True, slots=True)
class FocalOfMean:
    """The call that multiplies the mean of a loss by a factor of this mean, the loss, and what takes the mean."""

    product: Call
    loss: Call
    mean: Call
    power: Call
    samples: int


def focal_of_means(facts: TraceIndex) -> Iterator[FocalOfMean]:
    """Yields these products, each loss once. Several such losses may be meant as weights of their tasks."""
    found = dict[int, FocalOfMean]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            one = _found(facts, call) if op_name(call) in _PRODUCTS and len(call.inputs) == 2 else None
            if one is not None:
                found.setdefault(one.loss.site, one)
    if len(found) == 1:
        yield from found.values()


def _found(facts: TraceIndex, product: Call) -> FocalOfMean | None:
    if any(shape_of(facts, access.tensor) != () for access in product.inputs):
        return None
    for one, other in ((0, 1), (1, 0)):
        loss = _loss(facts, product.inputs[one].tensor, product.index)
        power = _power(facts, product.inputs[other].tensor, product.index)
        if loss is None or power is None or not _is_of(facts, power, loss):
            continue
        samples = shape_of(facts, loss.inputs[0].tensor)[:1]
        mean = _mean(facts, loss, power)
        is_found = mean is not None and bool(samples) and samples[0] > 1
        return FocalOfMean(product, loss, mean, power, samples[0]) if mean is not None and is_found else None
    return None


def _mean(facts: TraceIndex, loss: Call, power: Call) -> Call | None:
    """Returns the call that takes the mean of a loss: the loss itself, or the one after it that leaves one number."""
    if shape_of(facts, loss.outputs[0].tensor) == ():
        return loss if reduces_by_mean(facts, loss) else None
    number, before = power.inputs[0].tensor, power.index
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or made.index <= loss.index or not made.inputs:
            return None
        number, before = made.inputs[0].tensor, made.index
        if op_name(made) == "mean" and shape_of(facts, number) != ():
            return made
    return None


def _loss(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the loss that a number is, up to a constant factor."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or op_name(made) in _LOSSES:
            return made
        if op_name(made) not in _CONSTANT or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _power(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the power that a factor is."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or op_name(made) in _POWERS:
            return made
        if op_name(made) not in _CONSTANT or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_of(facts: TraceIndex, power: Call, loss: Call) -> bool:
    """Returns whether a power is one of `1 - exp(-loss)`, with the loss as a mean."""
    number, before, names = power.inputs[0].tensor, power.index, list[str]()
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None:
            return False
        if made.index == loss.index:
            return "exp" in names and bool({"rsub", "sub", "add"} & set(names[: names.index("exp")]))
        if shape_of(facts, number) != () or op_name(made) not in _CONSTANT | {"rsub", "sub", "add", "exp", "neg"}:
            return False
        names.append(op_name(made))
        if len(made.inputs) != 1:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False
