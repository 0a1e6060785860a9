"""Names values that the target of a loss picks by the places of the greatest of the same values."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.chosen_values import chosen_values
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in chosen_values(facts):
        yield stands_out(
            f"{as_written(facts, each.picked)} picks the greatest values of "
            f"{named(facts, each.values, each.picked.index)}: {as_written(facts, each.choice)} chooses by "
            "the same values, of the same parameters, so this is their maximum, and no other network chooses",
            facts.label("needed_here", each.choice.site, "chooses by the same values", each.choice.index),
            facts.label("observed_here", each.picked.site, "picks the values", each.picked.index),
        )
