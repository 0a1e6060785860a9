"""Defines the facts about data that only a run with `--training` records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tensorlens.records.fields import LongAs, NonNegative, SiteId, TensorId


@dataclass(frozen=True, slots=True)
class WrappedAround:
    """A call whose result has 8 bits, and does not hold the exact result for some elements: 3 - 5 gives 254."""

    index: int  # of the call
    elements: NonNegative
    wrapped: NonNegative  # of these, the ones with another value than the exact one
    least: int  # of the exact values
    most: int


@dataclass(frozen=True, slots=True)
class SampledLabels:
    """The samples that a loader draws by weights, with the numbers that it gives with them, as labels are."""

    index: int
    number: NonNegative
    site: SiteId | None  # the line that the loader runs at
    weights: TensorId  # of the sampler
    labels: TensorId  # the first of these numbers
    samples: NonNegative  # that the weights are for
    counts: tuple[NonNegative, ...]  # how many samples have each of the different weights
    values: Annotated[tuple[float, ...], LongAs("counts")]  # these weights
    drawn: tuple[NonNegative, ...]  # samples that were drawn, for each weight and each label
    names: tuple[int, ...]  # the labels


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Samples that a loader gives without a backward pass, of a part of a data set on which another part is trained."""

    index: int
    number: NonNegative
    site: SiteId | None  # the line that evaluates
    trained_site: SiteId | None  # the line that trains
    samples: NonNegative  # of the data set, up to the last one that both parts have
    trained: NonNegative  # samples that backward passes have used before
    evaluated: NonNegative
    again: NonNegative  # of these, the ones that backward passes had used


@dataclass(frozen=True, slots=True)
class ReshapedArray:
    """A tensor on the memory of an array that is a reshape of another one, with all of its numbers in their order."""

    index: int
    tensor: TensorId
    before: tuple[int, ...]  # the shape of the other array
    after: tuple[int, ...]
