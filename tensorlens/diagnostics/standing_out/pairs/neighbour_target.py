"""Names contrastive losses that pair neighbouring rows of one view, where the other view begins half of them later."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.neighbour_targets import neighbour_targets
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in neighbour_targets(facts):
        joined, rows = as_written(facts, each.joined), f"{each.rows:,}"
        yield stands_out(
            f"{as_written(facts, each.pairs)} pairs rows 0 and 1, 2 and 3, and so on, and {joined} has put two views "
            f"of {rows} rows one after the other: row 0 and row {rows} are of one sample, and each pair is of two "
            "rows of one view",
            facts.label("needed_here", each.named.site, "paired here", each.named.index),
            facts.label("observed_here", each.joined.site, "joined here", each.joined.index),
        )
