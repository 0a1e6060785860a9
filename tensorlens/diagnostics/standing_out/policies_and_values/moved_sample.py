"""Names log-probabilities of samples that a line has squashed before."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.moved_samples import moved_samples
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in moved_samples(facts):
        value, moved = each.density.inputs[0].tensor, as_written(facts, each.moved)
        yield stands_out(
            f"{as_written(facts, each.density)} takes the density at {named(facts, value, each.density.index)}, which "
            f"{moved} has squashed: the distribution has not drawn this value, but the one before",
            facts.label("needed_here", each.density.site, "the log-probability", each.density.index),
            facts.label("value_made_here", each.moved.site, "squashed here", each.moved.index),
        )
