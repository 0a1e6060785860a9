"""Counts the steps of learning-rate schedulers, and notes which of them change rates that no step uses any more."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import torch
from torch.optim import lr_scheduler

from tensorlens.records.training import LearningRateSchedule
from tensorlens.records.training_values import PlateauMetric, RateSetBetween
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.optimizer_groups import rate_of
from tensorlens.tracer.training.schedule_counts import Count, counts_of

MOST = 1_000  # schedulers of a run
_TORCH = lr_scheduler.__name__
_LENGTHS = {"CosineAnnealingLR": "T_max", "PolynomialLR": "total_iters", "OneCycleLR": "total_steps"}


@dataclass(slots=True)
class _Metric:
    """The values that a scheduler was given which waits for the best one."""

    mode: str
    first: float
    last: float
    least: float
    most: float
    rate: float  # after the last step
    steps: int = 1
    lows: int = 0
    highs: int = 0
    cuts: int = 0

    def add(self, value: float, rate: float) -> None:
        self.steps += 1
        self.lows += value < self.least
        self.highs += value > self.most
        self.cuts += rate < self.rate
        self.last, self.rate = value, rate
        self.least, self.most = min(value, self.least), max(value, self.most)


@dataclass(slots=True)
class _SetRate:
    """A learning rate that was set between two steps of a scheduler: the first one."""

    steps: int  # of the scheduler before
    used: tuple[int, int]  # steps of the optimizer: since the scheduler's last step, and until that one
    before: float
    rate: float
    after: float
    times: int = 1


@dataclass(slots=True)
class _Schedule:
    number: int
    ref: weakref.ref[object]
    name: str
    site: int | None
    optimizer: int | None
    is_known: bool  # whether all of its steps are seen
    before: int  # steps of its optimizer before it was made
    is_held: bool = False
    steps: int = 0
    last: int | None = None  # the line of its last step
    idle: int = 0
    length: tuple[int, str] = (0, "")
    counts: tuple[Count, ...] = ()  # that the functions of a `LambdaLR` read
    seen: tuple[int, int] = (0, 0)  # steps of its optimizer and of all, at its last step
    metric: _Metric | None = None
    rates: tuple[float, ...] = ()  # of the groups of its optimizer, after its last step
    set_between: dict[int, _SetRate] = field(default_factory=dict)  # by group


class Schedules:
    """The schedulers of a run. `count` returns (number of an optimizer, its steps, steps of all optimizers)."""

    def __init__(self, recorder: Recorder, count: Callable[[torch.optim.Optimizer], tuple[int, int, int]]) -> None:
        self._recorder = recorder
        self._count = count
        self._schedules: weakref.WeakKeyDictionary[object, _Schedule] = weakref.WeakKeyDictionary()
        self._all: list[_Schedule] = []
        self._making = 0

    @contextmanager
    def making(self) -> Iterator[None]:
        """Lasts while a scheduler is made: the steps that this makes do not count."""
        self._making += 1
        try:
            yield
        finally:
            self._making -= 1

    def made(self, scheduler: object, frame: FrameType) -> None:
        """Notes a scheduler, and those that it steps."""
        optimizer = getattr(scheduler, "optimizer", None)
        if scheduler in self._schedules or self._making or len(self._all) >= MOST:
            return
        number, steps, every = self._count(optimizer) if isinstance(optimizer, torch.optim.Optimizer) else (None, 0, 0)
        site = self._recorder.sites.site_or_outside(frame)
        is_known = getattr(type(scheduler), "step").__module__ == _TORCH  # noqa: B009
        what = type(scheduler).__name__, site, number, is_known, steps
        schedule = _Schedule(len(self._all), weakref.ref(scheduler), *what, length=_length(scheduler))
        schedule.seen, schedule.rates = (steps, every), rates_of(scheduler)
        schedule.counts = _lasting(schedule, scheduler, counts_of(scheduler))
        self._schedules[scheduler] = schedule
        self._all.append(schedule)

    def stepped(self, scheduler: object, frame: FrameType, before: tuple[float, ...], metric: object = None) -> None:
        """Counts a step. It is idle if other optimizers have stepped since the last one, and its own has not.

        `before`: the learning rates before it.
        """
        known = self._schedules.get(scheduler)
        optimizer = getattr(scheduler, "optimizer", None)
        if known is None or self._making:
            return
        _note_rates(known, self._used(known, optimizer), before, rates_of(scheduler))
        known.steps += 1
        if known.counts and not known.steps & (known.steps - 1):  # now and then
            known.counts = _lasting(known, scheduler, known.counts)
        known.last = self._recorder.sites.site_or_outside(frame)
        if isinstance(optimizer, torch.optim.Optimizer):
            _, steps, every = self._count(optimizer)
            if steps > known.seen[0]:
                known.idle = 0
            elif every > known.seen[1]:
                known.idle += 1
            known.seen = steps, every
            if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
                _note_metric(known, scheduler, metric)

    def _used(self, known: _Schedule, optimizer: object) -> tuple[int, int]:
        """Returns the steps of an optimizer since the last step of its scheduler, and those from when that was made."""
        steps = self._count(optimizer)[1] if isinstance(optimizer, torch.optim.Optimizer) else 0
        return max(0, steps - known.seen[0]), max(0, known.seen[0] - known.before)

    def write(self, number: int) -> None:
        """Writes what was counted so far."""
        for schedule in self._all:
            self._note_held(schedule.ref())
        for each in self._all:
            what = each.number, each.name, each.site, each.optimizer, each.is_known, each.is_held
            self._recorder.rows.write_fact(
                LearningRateSchedule,
                number,
                *what,
                each.steps,
                each.last,
                each.idle,
                each.before,
                *self._length_at_end(each),
            )
            for group, found in each.set_between.items():
                counts, rates = (found.times, found.steps, *found.used), (found.before, found.rate, found.after)
                self._recorder.rows.write_fact(RateSetBetween, number, each.number, group, *counts, *rates)
            if each.metric is not None:
                values = each.metric
                ends = values.first, values.last
                seen = values.steps, values.lows, values.highs, values.cuts
                self._recorder.rows.write_fact(PlateauMetric, number, each.number, values.mode, *ends, *seen)

    def _length_at_end(self, known: _Schedule) -> tuple[int, str, int | None]:
        """Returns what `_length` does or, of a `LambdaLR`, a number that its function reads, with the function: that
        of its own steps or of the steps of its optimizer."""
        used = known.seen[0] - known.before
        found = next((each for each in known.counts if each.value == known.steps), None)
        if found is None and all(each.value * known.steps != used for each in known.counts):
            # else the function makes steps of the scheduler into those of the optimizer
            found = next((each for each in known.counts if each.value == used), None)
        if found is None or not self._recorder.sites.is_user(found.code.co_filename):
            return *known.length, None
        return found.value, found.name, self._recorder.sites.definition(found.code)

    def _note_held(self, scheduler: object) -> None:
        """Notes the schedulers that another one has in its attributes, and steps itself."""
        for value in list(vars(scheduler).values()) if scheduler is not None else ():
            for each in value if isinstance(value, list | tuple) else (value,):
                if isinstance(each, lr_scheduler.LRScheduler) and (held := self._schedules.get(each)) is not None:
                    held.is_held = True


def rates_of(scheduler: object) -> tuple[float, ...]:
    """Returns the learning rates of the groups of a scheduler's optimizer."""
    groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", ())
    return tuple(rate_of(group) for group in groups)


def _note_rates(known: _Schedule, used: tuple[int, int], before: tuple[float, ...], after: tuple[float, ...]) -> None:
    """Notes the rates that something else than the scheduler has changed since its last step."""
    for group, (last, rate, now) in enumerate(zip(known.rates, before, after, strict=False)):
        if rate == last or rate != rate:
            continue
        if group in known.set_between:
            known.set_between[group].times += 1
        else:
            known.set_between[group] = _SetRate(known.steps, used, last, rate, now)
    known.rates = after


def _note_metric(known: _Schedule, scheduler: lr_scheduler.ReduceLROnPlateau, metric: object) -> None:
    if isinstance(metric, torch.Tensor) and (metric.numel() != 1 or not is_measurable(metric)):
        return
    value = float(metric)  # type: ignore[arg-type]  # the scheduler has done the same
    rate = rate_of(scheduler.optimizer.param_groups[0])
    if known.metric is None:
        known.metric = _Metric(scheduler.mode, value, value, value, value, rate)
    else:
        known.metric.add(value, rate)


def _lasting(known: _Schedule, scheduler: object, counts: tuple[Count, ...]) -> tuple[Count, ...]:
    """Returns those of some numbers that still have their values. A schedule that another run has begun has none."""
    is_begun = getattr(scheduler, "last_epoch", 0) != known.steps
    now = set(counts_of(scheduler)) if counts and not is_begun else ()
    return tuple(each for each in counts if each in now)


def _length(scheduler: object) -> tuple[int, str]:
    """Returns how many steps a scheduler is made for, and the option that says so; (0, ""): it is not known."""
    name = _LENGTHS.get(type(scheduler).__name__, "")
    value = getattr(scheduler, name, 0) if name else 0
    return (value, name) if type(value) is int and value > 0 else (0, "")
