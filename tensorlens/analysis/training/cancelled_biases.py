"""Recognises biases whose gradients cancel: a loss of differences does not depend on what is added to every result."""

from __future__ import annotations

from collections.abc import Iterable

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Call


def is_cancelled_bias(training: MeasuredTraining, row: ParameterRow, zeroing: Iterable[Call] = ()) -> bool:
    """Returns whether a parameter is the bias of a layer whose weight has gradients.

    Its own gradients are then zero because they cancel in their sum, as for a critic that compares two means.
    `zeroing`: the calls that pass only zeros on to it, which can only be those that add it.
    """
    layer, _, last = row.name.rpartition(".")
    if last != "bias":
        return False
    weight = next((each for each in training.rows if each.name == f"{layer}.weight"), None)
    if weight is None or weight.statistics is None or weight.statistics.filled <= weight.statistics.zero:
        return False
    return all(any(access.tensor == row.tensor for access in call.inputs) for call in zeroing)
