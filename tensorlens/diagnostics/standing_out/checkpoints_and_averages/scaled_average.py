"""Names weighted averages of trained copies that are loaded although their weights do not sum to 1."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.scaled_averages import scaled_averages
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in scaled_averages(training):
        yield stands_out(
            f"the module loads a weighted sum of {each.states} trained copies of it, whose weights sum to "
            f"{each.weight:.3g}, not to 1: copies that are all equal would give {each.weight:.3g} times their values",
            None if each.divided is None else Label("value_made_here", each.divided, "divided here"),
            facts.label("value_made_here", each.added.site, "summed here", each.added.index),
            facts.label("needed_here", each.load.site, "loaded here", each.load.index),
        )
