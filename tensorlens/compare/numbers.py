"""Defines the numbers in the tensors that `compare` probes with, and in the programs that it prints.

`signed` numbers are negative, zero and positive; two are equal, and some equal the number of `y` at the same index.
`positive` numbers are between 0 and 1, for operations such as `log` that have no value elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorlens.compare.comparison_records import Input

SIGNED = (-1.5, 2.0, 0.0, 2.0, 0.5, -0.5, 1.0, -2.0, 3.0)
POSITIVE = (0.25, 0.75, 0.5, 0.75, 0.125, 0.375, 0.625, 0.0625, 0.875)
SECOND = (2.0, 2.0, 1.0, -1.0, 0.5, 3.0, -3.0, 1.5, -2.0)  # of y
SECOND_POSITIVE = (0.5, 0.75, 0.125, 0.25, 0.125, 0.875, 0.375, 0.5, 0.25)
VALUES = {"signed": (SIGNED, SECOND), "positive": (POSITIVE, SECOND_POSITIVE)}


def flat(shape: tuple[int, ...], numbers: tuple[float, ...]) -> list[float]:
    """Returns `numbers`, repeated to fill a tensor of that shape."""
    return [numbers[index % len(numbers)] for index in range(math.prod(shape))]


def dense_strides(shape: Sequence[int]) -> list[int]:
    """Returns the strides of a contiguous tensor."""
    strides = [1] * len(shape)
    for index in range(len(shape) - 2, -1, -1):
        strides[index] = strides[index + 1] * max(shape[index + 1], 1)
    return strides


def sizes_and_strides(spec: Input) -> tuple[list[int], list[int]]:
    """Returns the shape and strides of the memory for x. For a view, it holds two tensors, and x is the second."""
    shape = list(spec.shape)
    gaps = spec.layout in ("every_second", "first_columns")
    strides = dense_strides([*shape[:-1], shape[-1] * 2] if gaps else shape)
    if spec.layout == "every_second":
        strides[-1] = 2
    if spec.layout == "transposed":
        strides = dense_strides(shape[::-1])[::-1]
    if not spec.view:
        return shape, strides
    return [2, *shape], [max(math.prod(shape), 1) * (2 if gaps else 1), *strides]


def nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    """Nests a flat list according to a shape."""
    if not shape:
        return values[0]
    step = len(values) // shape[0] if shape[0] else 0
    return [nested(values[index * step : (index + 1) * step], shape[1:]) for index in range(shape[0])]
