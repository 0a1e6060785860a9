"""Measures the training of a run with `--training`: at each optimizer step, and after each backward pass.

A fact of a parameter is about the steps of the optimizers that hold it. A leaf that no optimizer has stepped has
facts about the backward passes that reached it, so that a parameter that was never given to an optimizer is seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from math import isfinite, nan
from types import FrameType
from typing import Any

import torch

from tensorlens.records.training import OptimizerGroup, ParameterMovement, ParameterStatistics, TrainingMeasured
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.live_memory import LiveMemory
from tensorlens.tracer.training.nonfinite_seen import NonfiniteValues, Search
from tensorlens.tracer.training.parameter_statistics import (
    MeasuredParameter,
    Series,
    gradient_norms,
)
from tensorlens.tracer.training.reduced_losses import ReducedLosses
from tensorlens.tracer.training.zeroed_gradients import ZeroedGradients

MOST = 20_000  # parameters of a run that are measured


@dataclass(slots=True)
class _Group:
    """A parameter group, as it was last seen."""

    site: int | None
    parameters: tuple[int, ...]
    rates: tuple[float, float]
    weight_decay: float
    momentum: float
    is_shared: bool
    course: Series = field(default_factory=Series)  # of its learning rates


@dataclass(slots=True)
class _Optimizer:
    number: int
    name: str
    groups: list[_Group]
    steps: int = 0
    turns: tuple[int, int] = (0, 0)  # the first and the last of these, among the steps of all optimizers


class TrainingStatistics:
    """The measurements of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._guard = ErrorGuard(recorder, "the training")
        self._parameters: dict[int, MeasuredParameter] = {}
        self._optimizers: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Optimizer] = weakref.WeakKeyDictionary()
        self._all: list[_Optimizer] = []
        self._zeroed = ZeroedGradients(recorder)
        self._reduced = ReducedLosses(recorder)
        self._memory = LiveMemory(recorder)
        self.nonfinite = NonfiniteValues(recorder)
        self._steps = self._passes = self._written = 0

    def search_nonfinite(self, search: Search) -> Callable[[], tuple[int, int]]:
        """Has the first loss or gradient that is not finite explained. Returns a function that counts passes and
        steps."""
        self.nonfinite.search = search
        return lambda: (self.nonfinite.passes, self._steps)

    # --- what happens -------------------------------------------------------------------------------------------------

    def made(self, optimizer: torch.optim.Optimizer, frame: FrameType) -> None:
        """Notes the groups of an optimizer that was made, or that has got another group."""
        with self._guard, torch._C.DisableTorchFunction():
            self._known(optimizer, self._recorder.sites.site_or_outside(frame))

    def expect_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Keeps the values before a step with a closure, which computes the gradients: it is measured afterwards."""
        with self._guard, MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            for options in optimizer.param_groups:
                for parameter in options["params"]:
                    measured = self._measured(parameter)
                    if measured is not None:
                        measured.expect_round(parameter, stepped=True)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Measures the gradients that a step uses."""
        with self._guard, MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            known = self._known(optimizer, None)
            known.steps += 1
            self._steps += 1
            known.turns = known.turns[0] or self._steps, self._steps
            self._memory.step(self._steps)
            found: list[tuple[MeasuredParameter, torch.Tensor]] = []
            for group, options in zip(known.groups, optimizer.param_groups, strict=False):
                rate, (low, high) = _rate(options), group.rates
                group.rates = (rate, rate) if known.steps == 1 else (min(low, rate), max(high, rate))
                group.course.add(rate)
                group.weight_decay = _number(options.get("weight_decay"))
                found += self._round(options["params"], stepped=True)
            self._note(found, uses_all=not _skips(optimizer))
            if self._steps & (self._steps - 1) == 0:
                self._write()

    def pass_begins(self, roots: Sequence[torch.Tensor]) -> Callable[[], None] | None:
        """Notes how the loss was reduced and what is not finite, and looks for the node behind a gradient of zeros.

        Returns a function to call when the pass has ended.
        """
        ends: list[Callable[[], None] | None] = []
        with self._guard, self._recorder.quiet():
            ends += [self.nonfinite.pass_begins(roots, self._steps), self._zeroed.begin_pass(roots)]
        with self._guard, self._recorder.quiet():
            self._reduced.begin_pass(roots)

        def guarded() -> None:
            for end in filter(None, ends):
                with self._guard, torch._C.DisableTorchFunction():
                    end()

        return guarded if any(ends) else None

    def pass_ended(self, leaves: Iterable[int]) -> None:
        """Measures the gradients of the leaves that a backward pass has reached, unless an optimizer steps them."""
        with self._guard, MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            self._passes += 1
            known = self._recorder.leaves
            waiting = [n for n in leaves if (seen := self._parameters.get(n)) is None or not seen.stepped]
            tensors = [tensor for n in waiting if n in known and (tensor := known[n]()) is not None]
            found = self._round([tensor for tensor in tensors if tensor.is_leaf], stepped=False)
            self._note(found, uses_all=False)

    def end(self) -> None:
        """Writes the facts of the whole run."""
        with self._guard, torch._C.DisableTorchFunction(), MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            self._write()

    # --- measuring ----------------------------------------------------------------------------------------------------

    def _known(self, optimizer: torch.optim.Optimizer, site: int | None) -> _Optimizer:
        known = self._optimizers.get(optimizer)
        if known is None:
            known = _Optimizer(len(self._all), type(optimizer).__name__, [])
            self._optimizers[optimizer] = known
            self._all.append(known)
        for place, options in enumerate(optimizer.param_groups):
            numbers = tuple(map(self._recorder.tensor_ids.id_of, options["params"]))
            if place == len(known.groups):
                rate, decay = _rate(options), _number(options.get("weight_decay"))
                shared = any(each is options for other in self._optimizers if other is not optimizer
                             for each in other.param_groups)  # fmt: skip
                known.groups.append(_Group(site, numbers, (rate, rate), decay, _momentum(options), shared))
            known.groups[place].parameters = numbers
        return known

    def _measured(self, parameter: torch.Tensor) -> MeasuredParameter | None:
        """Returns what measures a parameter; None if too many are measured already."""
        ref, number, *_ = self._recorder.tensor_ids.entry(parameter)
        measured = self._parameters.get(number)
        if measured is None and len(self._parameters) < MOST:
            measured = self._parameters[number] = MeasuredParameter(number, ref)
        return measured

    def _round(self, parameters: Iterable[torch.Tensor], stepped: bool) -> list[tuple[MeasuredParameter, torch.Tensor]]:
        """Begins a round of some parameters. Returns those with a gradient, and the gradients."""
        found: list[tuple[MeasuredParameter, torch.Tensor]] = []
        for parameter in parameters:
            measured = self._measured(parameter)
            if measured is None:
                continue
            measured.begin_round(parameter, stepped)
            gradient = parameter.grad
            if gradient is not None:
                dense = gradient.to_dense() if gradient.layout is not torch.strided else gradient
                if is_measurable(dense):
                    found.append((measured, dense.detach()))
        return found

    def _note(self, found: list[tuple[MeasuredParameter, torch.Tensor]], uses_all: bool) -> None:
        """Adds gradients. Of those that no step uses (`uses_all`), the ones of leaves without an optimizer count as
        the script's result."""
        norms = gradient_norms([gradient for _, gradient in found])
        if not self.nonfinite.found and not all(map(isfinite, norms)):
            odd = [pair for pair, norm in zip(found, norms, strict=True) if not isfinite(norm)]
            held = set() if uses_all else {n for each in self._all for group in each.groups for n in group.parameters}
            self.nonfinite.look_at([(m.number, g) for m, g in odd if m.number not in held], self._steps - uses_all)
        for (measured, gradient), norm in zip(found, norms, strict=True):
            measured.note(gradient, norm)
            if measured.filled == measured.zero:
                self._zeroed.want(measured.number, measured.ref)
            elif measured.zero:
                self._zeroed.unwant(measured.number)

    def _write(self) -> None:
        number, rows = self._written, self._recorder.rows
        self._written += 1
        for optimizer in self._all:
            for place, group in enumerate(optimizer.groups):
                what = (optimizer.number, place, optimizer.name, group.site, group.parameters, optimizer.steps)
                more = (group.course.all(), optimizer.turns, group.is_shared)
                rows.write_fact(OptimizerGroup, number, *what, group.rates, group.weight_decay, group.momentum, *more)
        for parameter in self._parameters.values():
            rows.write_fact(ParameterStatistics, *astuple(parameter.statistics(number))[1:])
            movement = parameter.movement(number)
            if movement is not None:
                rows.write_fact(ParameterMovement, *astuple(movement)[1:])
        rows.write_fact(TrainingMeasured, number, self._steps, self._passes)


def _rate(options: dict[str, Any]) -> float:
    """Returns the learning rate of a group; NaN if it has none, or none that can be read."""
    rate = options.get("lr")
    is_known = is_measurable(rate) if isinstance(rate, torch.Tensor) else isinstance(rate, int | float)
    return _number(rate) if is_known else nan


def _skips(optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether a `GradScaler` has made a fused optimizer skip this step, because it found an infinity."""
    found = getattr(optimizer, "found_inf", None)
    return isinstance(found, torch.Tensor) and found.numel() == 1 and bool(found)


def _number(value: object) -> float:
    """Returns an option of an optimizer as a number; a learning rate may be a tensor."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and is_measurable(value) else 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def _momentum(options: dict[str, Any]) -> float:
    betas = options.get("betas")
    return _number(betas[0] if isinstance(betas, tuple | list) and betas else options.get("momentum"))
