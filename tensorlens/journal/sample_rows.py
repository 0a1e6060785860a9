"""The rows of runs whose gradients are compared: samples of backward passes and of optimizer steps."""

from __future__ import annotations

from typing import NamedTuple

Sample = tuple[tuple[int, ...], str, bytes]  # shape, dtype, values as doubles


class PassRow(NamedTuple):
    """Samples of a backward pass, for `--reference`."""

    roots: tuple[Sample | None, ...]
    gradients: tuple[tuple[int, int, Sample | None, Sample | None], ...]  # place, tensor, its values, its gradient
    failed: bool
    exact: tuple[tuple[int, Sample | None], ...]  # place, gradient in double precision: of a run that computes it


class StepSampleRow(NamedTuple):
    """Samples of the gradients that a step of an optimizer uses, in a run that is compared."""

    optimizer: int  # the optimizers are numbered in the order in which they are made
    gradients: tuple[tuple[int, Sample | None, int], ...]  # tensor, its gradient, the passes that added to it


class UncomparedRow(NamedTuple):
    """A check of `--reference` that failed itself."""

    check: str  # `reference.PASSES` or `reference.FORMULAS`
    reason: str
