"""Names optimizers of the program whose steps read no learning rate of a group, while a schedule changes it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.rates_not_read import RateElsewhere, rate_elsewhere, steps_inner
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import LearningRateSchedule, OptimizerGroup

_MIN_STEPS = 4


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    reported: set[str] = set()
    for group in training.groups:
        low, high = group.rates
        if group.steps < _MIN_STEPS or not low < high or group.name in reported:
            continue
        found = rate_elsewhere(facts, group.name)
        inner = _inner(training, group) if found is None else None
        if found is None and inner is None:
            continue
        reported.add(group.name)
        known = (each for each in facts.trace.inspection.schedules if each.number == training.measured.number)
        schedules = [each for each in known if each.optimizer == group.optimizer]
        yield _of_inner(training, group, inner, schedules) if inner else _elsewhere(training, group, found, schedules)


def _elsewhere(
    training: MeasuredTraining,
    group: OptimizerGroup,
    found: RateElsewhere | None,
    schedules: list[LearningRateSchedule],
) -> StandingOut:
    facts, (low, high) = training.facts, group.rates
    assert found is not None
    return stands_out(
        f"`{group.name}` uses `{found.code}` as its learning rate: the `lr` of its groups changes between {low:g} "
        f"and {high:g} in {group.steps:,} steps, and they do not read it",
        Label("observed_here", found.span, "read here"),
        *(facts.label("state_changed_here", each.site, "a schedule of the groups") for each in schedules[:1]),
        facts.label("optimizer_made_here", group.site, "the optimizer is made here"),
    )


def _inner(training: MeasuredTraining, group: OptimizerGroup) -> OptimizerGroup | None:
    """Returns the group of the optimizer that a wrapper steps, if its rate stays the one that both were made with."""
    facts = training.facts
    for inner in training.groups:
        is_same = inner.optimizer != group.optimizer and {*inner.parameters} == {*group.parameters}
        is_constant = inner.rates[0] == inner.rates[1] == inner.made_rate == group.made_rate
        if is_same and is_constant and inner.steps >= _MIN_STEPS and not (inner.is_shared or group.is_shared):
            return inner if steps_inner(facts, group.name) else None
    return None


def _of_inner(
    training: MeasuredTraining, group: OptimizerGroup, inner: OptimizerGroup, schedules: list[LearningRateSchedule]
) -> StandingOut:
    facts, (low, high) = training.facts, group.rates
    return stands_out(
        f"`{group.name}` leaves the updates to another optimizer, `{inner.name}`, whose `lr` stays "
        f"{inner.rates[0]:g}: that of the groups of `{group.name}` changes between {low:g} and {high:g} in "
        f"{group.steps:,} steps, and no method reads it",
        facts.label("optimizer_made_here", inner.site, "made with groups of its own"),
        *(facts.label("state_changed_here", each.site, "a schedule of the other groups") for each in schedules[:1]),
        facts.label("optimizer_made_here", group.site, "made here"),
    )
