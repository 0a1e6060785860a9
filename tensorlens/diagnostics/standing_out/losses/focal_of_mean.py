"""Names focal losses whose factor is one number for a whole batch."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.focal_of_means import focal_of_means
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in focal_of_means(facts):
        mean, power = as_written(facts, each.mean), as_written(facts, each.power)
        returned = f"{mean} returns {'one number' if each.is_sum else 'the mean'} of {each.samples:,} rows, and "
        yield stands_out(
            returned
            + (
                f"{as_written(facts, each.product)} multiplies this mean by {power}: the factor of each row weighs "
                "the loss of all of them"
                if each.is_each
                else f"{power} is computed from it: the factor of the loss is one number for all rows, whatever the "
                "loss of each is"
            ),
            facts.label("observed_here", each.mean.site, "one number", each.mean.index),
            facts.label("value_made_here", each.power.site, "the factor", each.power.index),
        )
