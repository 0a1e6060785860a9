"""Names value targets that are made of an advantage after it was normalised."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.normalised_targets import normalised_targets
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in normalised_targets(facts):
        yield stands_out(
            f"{as_written(facts, each.error)} compares a value with {as_written(facts, each.added)}, which adds an "
            f"advantage that {as_written(facts, each.normalised)} has normalised, and not the advantage itself: the "
            "sum is no return",
            facts.label("value_made_here", each.added.site, "adds the normalised advantage", each.added.index),
            facts.label("needed_here", each.normalised.site, "normalised here", each.normalised.index),
            facts.label("observed_here", each.error.site, "trains a value towards it", each.error.index),
        )
