"""Measures the steps of an optimizer at which nothing is new, with a few calls for all of its parameters together.

A step is steady if it finds the same parameters as the one before, each with a finite gradient that is not zero, and if
no zeros are to be counted. What it adds to each parameter is the norm of a gradient, which is kept until it is asked
for.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING

import torch

from tensorlens.tracer.isolation.readable import is_in_main_memory
from tensorlens.tracer.isolation.torch_originals import (
    device_of,
    dtype_of,
    item,
    layout_of,
    norms,
    stack,
    tolist,
)
from tensorlens.tracer.recording.tensor_ids import PLAIN
from tensorlens.tracer.training.parameter_statistics import MeasuredParameter

if TYPE_CHECKING:
    from tensorlens.tracer.recording._fast_path import FastPath

FoundParameter = tuple[torch.Tensor, int, int, torch.Tensor | None, int | None, int]
"""A parameter as a step finds it: (tensor, its id, its version counter, its gradient, id and version of that)"""
_number, _gradient = itemgetter(1), itemgetter(3)
_MOST_KEPT = 32  # steps


class SteadySteps:
    """The steady steps of one optimizer since its last other step."""

    def __init__(self, measured: Sequence[MeasuredParameter], gradient: torch.Tensor, in_c: FastPath | None) -> None:
        self.numbers = tuple(each.number for each in measured)
        self._set = frozenset(self.numbers)
        self._measured = measured
        self._in_c = in_c
        self._left = min(each.rounds_before_count for each in measured)
        self._unreached = [(place, each.reach) for place, each in enumerate(measured) if each.has_unreached]
        self._dtype, self._device, self._layout = dtype_of(gradient), device_of(gradient), layout_of(gradient)
        self._is_in_main_memory = is_in_main_memory(gradient)
        self._norms: list[list[float]] = []

    @classmethod
    def after(
        cls, found: Sequence[tuple[MeasuredParameter, torch.Tensor]], total: int, in_c: FastPath | None
    ) -> SteadySteps | None:
        """Returns what measures the steps after one that found these gradients of `total` parameters.

        Returns None if a parameter had no gradient but zeros so far, or if the gradients can't be measured together.
        """
        if len(found) != total or not found or dtype_of(found[0][1]) not in (torch.float32, torch.float64):
            return None
        if len({measured.number for measured, _ in found}) < total:
            return None
        if any(measured.filled == measured.zero for measured, _ in found):  # the first other gradient is news
            return None
        return cls([measured for measured, _ in found], found[0][1], in_c)

    def note(self, found: list[FoundParameter]) -> bool:
        """Measures a step. Returns whether it is steady: if not, nothing was measured."""
        gradients = self._gradients(found) if self._left > 0 else None
        if gradients is None:
            return False
        found_norms = norms(gradients, 2)
        values: list[float]
        values = list(map(item, found_norms)) if self._is_in_main_memory else tolist(stack(list(found_norms)))
        if 0.0 in values or not isfinite(sum(values)):
            return False
        for place, reach in self._unreached:
            reach(gradients[place], self._in_c)
        self._left -= 1
        self._norms.append(values)
        if len(self._norms) == _MOST_KEPT:
            self.settle()
        return True

    def _gradients(self, found: list[FoundParameter]) -> list[torch.Tensor] | None:
        """Returns the gradients, if all of them have the dtype, the device and the layout that they had."""
        gradients = _alike(found, self.numbers) if self._in_c is None else self._in_c.alike(found, self.numbers)
        if not gradients or dtype_of(gradients[0]) != self._dtype or layout_of(gradients[0]) != self._layout:
            return None
        return gradients if device_of(gradients[0]) == self._device else None

    def measures(self, numbers: Set[int]) -> bool:
        """Returns whether one of these parameters is among those of the optimizer."""
        return not self._set.isdisjoint(numbers)

    def settle(self) -> None:
        """Adds the steps to what is known of each parameter."""
        for measured, values in zip(self._measured, zip(*self._norms, strict=True), strict=False):
            measured.note_steady(values)
        self._norms = []


def _alike(found: list[FoundParameter], numbers: tuple[int, ...]) -> list[torch.Tensor] | None:
    """Returns the gradients if these are the parameters, and if all gradients are plain ones of one kind; else None.

    The compiled fast path does it instead, if there is one.
    """
    if tuple(map(_number, found)) != numbers:
        return None
    gradients: list[torch.Tensor] = list(map(_gradient, found))
    if not PLAIN.issuperset(map(type, gradients)):
        return None
    kinds = set(map(dtype_of, gradients)), set(map(device_of, gradients)), set(map(layout_of, gradients))
    return gradients if all(len(kind) == 1 for kind in kinds) else None
