"""Names loads of an optimizer's state that replace the learning rate that the optimizer was made with."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these loads, if all steps of all groups use the loaded rate."""
    inspection = training.facts.trace.inspection
    scheduled = {each.optimizer for each in inspection.schedules}
    for each in (rate for rate in inspection.loaded_rates if not rate.is_scheduled):
        groups = [group for group in training.groups if group.optimizer == each.optimizer]
        is_last = each.number == training.measured.number
        if not is_last or each.optimizer in scheduled or not groups or not groups[0].steps:
            continue
        if len({(group.made_rate, group.rates) for group in groups}) > 1 or groups[0].rates != (each.loaded,) * 2:
            continue
        steps = "its only step uses" if groups[0].steps == 1 else f"its {groups[0].steps} steps use"
        yield stands_out(
            f"{code_at(training.facts, each.site, 'Optimizer.load_state_dict')} replaces the learning rate of the new "
            f"`{groups[0].name}`, {each.made:g}, by the loaded one: {steps} {each.loaded:g}",
            training.facts.label("replaced_here", each.site, "loads another learning rate"),
            training.facts.label("optimizer_made_here", groups[0].site, "made with the first one"),
        )
