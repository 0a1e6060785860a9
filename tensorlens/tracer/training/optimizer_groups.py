"""Holds what is known of each optimizer and its groups, and reads their options."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import isclose, nan
from types import FrameType
from typing import Any

import torch

from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.training.made_options import MadeOptions
from tensorlens.tracer.training.parameter_statistics import Series
from tensorlens.tracer.training.steady_steps import SteadySteps

_NEAR = 0.001  # relative difference between two factors
_NUMBERS = (float, int, type(None))


@dataclass(slots=True)
class FirstRates:
    """The first learning rates of a group, as long as each is the one before times the same factor."""

    count: int = 0
    first: float = nan
    last: float = nan
    later: float = nan  # the highest one after these
    factor: float = nan

    def add(self, rate: float) -> None:
        if self.later == self.later:
            self.later = max(self.later, rate)
        elif not self.count:
            self.count, self.first, self.last = 1, rate, rate
        else:
            factor = rate / self.last if self.last > 0 else 0.0
            if factor > 1 and (self.count == 1 or isclose(factor, self.factor, rel_tol=_NEAR)):
                self.count, self.last, self.factor = self.count + 1, rate, factor
            else:
                self.later = rate


@dataclass(slots=True)
class Group:
    """A parameter group, as it was last seen."""

    site: int | None
    parameters: tuple[int, ...]
    rates: tuple[float, float]
    weight_decay: float
    momentum: float
    is_shared: bool
    made_rate: float
    course: Series = field(default_factory=Series)  # of its learning rates
    grown: FirstRates = field(default_factory=FirstRates)
    found: Counter[int] = field(default_factory=Counter)  # steps that found a gradient, by parameter
    steady: int = 0  # steps that found gradients of all `parameters`, which `found` does not count yet
    given: tuple[object, object] = (None, None)  # the learning rate and the weight decay of the last step, as they are

    @property
    def first_rates(self) -> tuple[int, float, float, float]:
        return self.grown.count, self.grown.first, self.grown.last, self.grown.later

    def settle(self) -> None:
        """Counts the steady steps for each parameter."""
        if self.steady:
            for number in self.parameters:
                self.found[number] += self.steady
            self.steady = 0

    def note_rate(self, options: dict[str, Any], is_first: bool) -> None:
        """Notes the learning rate and the weight decay of a step."""
        rate, decay = given = options.get("lr"), options.get("weight_decay")
        if rate is self.given[0] and decay is self.given[1] and type(rate) is float and not is_first:
            self.course.add(rate)
            if not self.grown.later >= rate:
                self.grown.add(rate)
            return
        self.given = given if type(rate) is float and type(decay) in _NUMBERS else (None, None)  # a tensor may change
        rate, (low, high) = rate_of(options), self.rates
        self.rates = (rate, rate) if is_first else (min(low, rate), max(high, rate))
        self.course.add(rate)
        self.grown.add(rate)
        self.weight_decay = number_of(options.get("weight_decay"))


@dataclass(slots=True)
class SeenOptimizer:
    """An optimizer, and how its steps were measured so far."""

    number: int
    name: str
    groups: list[Group]
    steps: int = 0
    turns: tuple[int, int] = (0, 0)  # the first and the last of these, among the steps of all optimizers
    sizes: tuple[int, ...] = ()  # of the groups at the last step
    steady: SteadySteps | None = None
    made: MadeOptions | None = None
    loaded: tuple[int | None, float, float, bool] | None = None  # a line, the old and the new learning rate, scheduled
    unread: tuple[tuple[str, str, float, float], ...] = ()  # when it was last there: see `MadeOptions.unread`


def rate_of(options: dict[str, Any]) -> float:
    """Returns the learning rate of a group; NaN if it has none, or none that can be read."""
    rate = options.get("lr")
    is_known = is_measurable(rate) if isinstance(rate, torch.Tensor) else isinstance(rate, int | float)
    return number_of(rate) if is_known else nan


def skips_step(optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether a `GradScaler` has made a fused optimizer skip this step, because it found an infinity."""
    found = getattr(optimizer, "found_inf", None)
    return isinstance(found, torch.Tensor) and found.numel() == 1 and bool(found)


def number_of(value: object) -> float:
    """Returns an option of an optimizer as a number; a learning rate may be a tensor."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and is_measurable(value) else 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def momentum_of(options: dict[str, Any]) -> float:
    """Returns the momentum of a group, of Adam the first of its betas."""
    betas = options.get("betas")
    return number_of(betas[0] if isinstance(betas, tuple | list) and betas else options.get("momentum"))


def maker_of(made: object, frame: FrameType) -> FrameType:
    """Returns the frame that makes an object: around the `__init__` of a class of the script that calls its base's."""
    while frame.f_code.co_name == "__init__" and frame.f_back is not None:
        arguments = frame.f_code.co_varnames[:1]
        if not arguments or frame.f_locals.get(arguments[0]) is not made:
            break
        frame = frame.f_back
    return frame
