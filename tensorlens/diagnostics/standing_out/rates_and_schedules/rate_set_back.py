"""Names learning rates that a line sets, and that the next step of a scheduler sets back."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.lasting_writes import is_lasting
from tensorlens.diagnostics.shared.learning_rate_text import group_name, lines_that_set_rates
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import LearningRateSchedule, OptimizerGroup
from tensorlens.records.training_values import RateSetBetween

_ANEW = frozenset(("LambdaLR", "OneCycleLR", "CyclicLR", "CosineAnnealingWarmRestarts"))
"""Schedulers that compute each rate from the one that the group had when the scheduler was made."""
_MIN_LEFT = 5  # steps of the scheduler after it
_LONGER = 3  # times as many steps of the optimizer as between other steps of the scheduler
_FEW = 2  # steps of the optimizer
_FACTOR = 2  # between the rate that was set and the one that it is set back to
_NEAR = 0.5  # relative difference between two steps of a schedule


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds those that were set once, while one scheduler alone steps for the optimizer."""
    facts = training.facts
    schedules = [each for each in facts.trace.inspection.schedules if each.number == training.measured.number]
    seen: set[int] = set()
    for each in facts.trace.inspection.rates_set:
        if each.number != training.measured.number or each.schedule in seen:
            continue
        schedule = next(other for other in schedules if other.schedule == each.schedule)
        own = [other for other in schedules if other.optimizer == schedule.optimizer]
        groups = [group for group in training.groups if group.optimizer == schedule.optimizer]
        group = next((group for group in groups if group.group == each.group), None)
        if len(own) == 1 and schedule.is_known and group is not None and _is_set_back(training, schedule, each):
            seen.add(each.schedule)
            yield _sentence(training, schedule, group, each)


def _is_set_back(training: MeasuredTraining, schedule: LearningRateSchedule, each: RateSetBetween) -> bool:
    """Returns whether the schedule goes on as if nothing had been set."""
    if schedule.name not in _ANEW or each.times > 1 or schedule.steps - each.steps < _MIN_LEFT:
        return False
    if each.rate < each.after and each.used <= _FEW and not _is_to_last(training, schedule):
        return False  # lower for one batch, or a few
    if not each.steps:
        return False  # a first phase with a rate of its own, after which the schedule begins
    if each.used * each.steps > _LONGER * each.earlier:
        return False  # the rate of a phase of its own, in which the scheduler rests
    low, high = sorted((each.rate, each.after))
    goes_on = isclose(each.before, each.after, rel_tol=_NEAR)
    return goes_on and low >= 0 and high > _FACTOR * low


def _is_to_last(training: MeasuredTraining, schedule: LearningRateSchedule) -> bool:
    """Returns whether the only line that sets rates is meant to change one for longer than until the next step."""
    facts, lines = training.facts, list(lines_that_set_rates(training.facts))
    step = facts.span(schedule.last)
    return len(lines) == 1 and step is not None and is_lasting(facts, lines[0], step)


def _sentence(
    training: MeasuredTraining, schedule: LearningRateSchedule, group: OptimizerGroup, each: RateSetBetween
) -> StandingOut:
    facts = training.facts
    left, lines = schedule.steps - each.steps, list(lines_that_set_rates(facts))
    return stands_out(
        f"the learning rate of {group_name(training, group)} is set to {each.rate:g} after {each.steps:,} steps of its "
        f"`{schedule.name}`, whose next step sets it back to {each.after:g}, as it computes the rate anew at each of "
        f"the {left:,} steps that are left",
        Label("state_changed_here", lines[0], "set here") if len(lines) == 1 else None,
        facts.label("called_here", schedule.last, "the scheduler steps here"),
        facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
    )
