"""Names optimizers of the program whose steps read no learning rate of a group, while a schedule changes it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_not_read import rate_elsewhere
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_MIN_STEPS = 4


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    reported: set[str] = set()
    for group in training.groups:
        low, high = group.rates
        if group.steps < _MIN_STEPS or not low < high or group.name in reported:
            continue
        found = rate_elsewhere(facts, group.name)
        if found is None:
            continue
        reported.add(group.name)
        schedules = [
            each
            for each in facts.trace.inspection.schedules
            if each.optimizer == group.optimizer and each.number == training.measured.number
        ]
        yield stands_out(
            f"`{group.name}` uses `{found.code}` as its learning rate: the `lr` of its groups changes between {low:g} "
            f"and {high:g} in {group.steps:,} steps, and they do not read it",
            Label("observed_here", found.span, "read here"),
            *(facts.label("state_changed_here", each.site, "a schedule of the groups") for each in schedules[:1]),
            facts.label("optimizer_made_here", group.site, "the optimizer is made here"),
        )
