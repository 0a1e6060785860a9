"""Measures whether an optimizer step moves a parameter although its gradient consists of zeros."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tensorlens.records.training import GradientOfZeros, StepsOnZeros
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import clone, detach, some
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.parameter_statistics import as_real, gradient_norms

NOTED = (1, 2, 4, 8)  # steps with such a gradient, of one parameter, that are noted one by one
_AVERAGES = ("momentum_buffer", "exp_avg")


@dataclass(slots=True)
class _Counts:
    steps: int = 0  # with a gradient of zeros
    moved: int = 0
    decayed: int = 0
    carried: int = 0
    distance: float = 0.0


@dataclass(frozen=True, slots=True)
class _Before:
    counts: _Counts
    ref: weakref.ref[torch.Tensor]
    values: torch.Tensor
    decays: bool
    carries: bool


class ZeroSteps:
    """The steps of a run that find gradients of zeros."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._counts: dict[tuple[int, int], _Counts] = {}  # by optimizer and parameter
        self._before: weakref.WeakKeyDictionary[torch.optim.Optimizer, list[_Before]] = weakref.WeakKeyDictionary()
        self.is_waiting = False  # a step that has begun found a gradient of zeros

    def step_begins(
        self, optimizer: torch.optim.Optimizer, place: int, zero: Sequence[tuple[int, weakref.ref[torch.Tensor]]]
    ) -> None:
        """Keeps a copy of the parameters whose gradients consist of zeros. `place` is the optimizer's number."""
        if not zero:
            if self.is_waiting:
                self._before.pop(optimizer, None)
                self.is_waiting = len(self._before) > 0
            return
        decaying = {id(p) for group in optimizer.param_groups if group.get("weight_decay") for p in group["params"]}
        before: list[_Before] = []
        for number, ref in zero:
            parameter = ref()
            if parameter is None or not is_measurable(parameter):
                continue
            counts = self._counts.setdefault((place, number), _Counts())
            counts.steps += 1
            if counts.steps in NOTED:
                self._recorder.rows.write_fact(GradientOfZeros, number)
            flags = id(parameter) in decaying, _carries(optimizer, parameter)
            before.append(_Before(counts, ref, clone(detach(parameter)), *flags))
        self._before[optimizer] = before
        self.is_waiting = True

    def step_ended(self, optimizer: torch.optim.Optimizer) -> None:
        """Compares these parameters with their copies."""
        kept = self._before.pop(optimizer, [])
        self.is_waiting = len(self._before) > 0
        pairs = [(each, parameter) for each in kept if (parameter := each.ref()) is not None]
        same = [(each, p) for each, p in pairs if p.shape == each.values.shape and p.device == each.values.device]
        norms = gradient_norms([as_real(detach(parameter) - each.values) for each, parameter in same])
        for (each, _), norm in zip(same, norms, strict=True):
            if norm:
                counts = each.counts
                counts.moved += 1
                counts.decayed += each.decays
                counts.carried += each.carries
                counts.distance += norm

    def write(self, number: int) -> None:
        """Writes what was counted so far."""
        for (optimizer, tensor), counts in self._counts.items():
            if counts.moved:
                moved = (counts.moved, counts.decayed, counts.carried)
                what = (number, optimizer, tensor, counts.steps)
                self._recorder.rows.write_fact(StepsOnZeros, *what, *moved, counts.distance)


def _carries(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> bool:
    """Returns whether an optimizer keeps an average of earlier gradients of a parameter that is not zero."""
    state: Any = optimizer.state.get(parameter)
    averages = [state.get(name) for name in _AVERAGES] if isinstance(state, dict) else []
    known = [each for each in averages if isinstance(each, torch.Tensor) and is_measurable(each)]
    return any(bool(some(each)) for each in known)
