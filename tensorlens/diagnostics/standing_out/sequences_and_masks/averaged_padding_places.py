"""Names means over padded rows that divide by all places, although a mask has set the padding to 0."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.averaged_padding import averaged_padding
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in averaged_padding(facts):
        mean, masked = as_written(facts, each.mean), as_written(facts, each.masked)
        mask = named(facts, each.mask, each.masked.index)
        labels = [
            facts.label("value_made_here", each.mean.site, "divided by all places", each.mean.index),
            facts.label("observed_here", each.masked.site, "the padding is set to 0 here", each.masked.index),
        ]
        one_line = facts.same_line(each.mean.site, each.masked.site)
        yield stands_out(
            f"{mean} divides by all {each.places:,} places of a row, and the mask {mask} sets the padding to "
            f"0 in {masked}: the more padding there is, the smaller is the mean",
            *labels[: 1 if one_line else 2],
        )
