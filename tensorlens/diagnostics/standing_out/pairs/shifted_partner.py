"""Names contrastive losses that pair rows of different samples, because the two of a sample are next to each other."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.shifted_partners import shifted_partners
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in shifted_partners(facts):
        yield stands_out(
            f"{as_written(facts, each.pairs)} pairs each of {2 * each.samples:,} rows with the one {each.samples:,} "
            f"rows away, and {as_written(facts, each.merged)} has put two rows of each of {each.samples:,} samples "
            "next to each other: no pair is of one sample",
            facts.label("needed_here", each.pairs.site, "paired here", each.pairs.index),
            facts.label("observed_here", each.merged.site, "put next to each other here", each.merged.index),
        )
