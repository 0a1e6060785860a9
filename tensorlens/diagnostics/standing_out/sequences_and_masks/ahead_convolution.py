"""Names convolutions with padding at both ends in a model that is to predict the next step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.ahead_convolutions import ahead_convolutions
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in ahead_convolutions(training):
        made = facts.creator(each.call.inputs[1].tensor)
        yield stands_out(
            f"{as_written(facts, each.call)} has padding at both ends, so each of {each.steps:,} steps sees the next "
            f"one, and {as_written(facts, each.loss)} compares a result of it with the next step",
            facts.label("value_made_here", each.call.site, "sees the next step", each.call.index),
            *([] if made is None else [facts.label("observed_here", made.site, "the layer", made.index)]),
            facts.label("needed_here", each.loss.site, "is to predict it", each.loss.index),
        )
