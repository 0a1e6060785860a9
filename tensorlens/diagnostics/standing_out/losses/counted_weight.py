"""Names class weights of a loss that are larger for the classes that are there more often."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.counted_weights import counted_weights
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in counted_weights(facts):
        what, they = "the counts of the classes in the targets by a number: the rarer a class is, the less", "it counts"
        if each.is_ratio:
            what = "the number of ones in the targets by the number of zeros: the rarer the ones are, the less"
            they = "they count"
        yield stands_out(
            f"{as_written(facts, each.made)} divides {what} {they} in {as_written(facts, each.loss)}",
            facts.label("value_made_here", each.made.site, "divided here", each.made.index),
            facts.label("needed_here", each.loss.site, "the loss", each.loss.index),
        )
