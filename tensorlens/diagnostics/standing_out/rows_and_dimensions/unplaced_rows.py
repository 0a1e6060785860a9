"""Names batches of graphs whose edges are joined without the place at which the nodes of each graph begin."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.batch_offsets import unplaced_numbers
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in unplaced_numbers(facts):
        one, other = each.starts
        yield stands_out(
            f"{as_written(facts, each.joined)} joins the row numbers of {len(each.joined.inputs)} parts as they are, "
            f"and {as_written(facts, each.used)} takes rows of {as_written(facts, each.rows)} with them: two batches "
            f"have the same numbers for a part whose rows begin at {one:,} in one and at {other:,} in the other",
            facts.label("observed_here", each.joined.site, "joined without these places", each.joined.index),
            facts.label("value_made_here", each.rows.site, "the rows are joined here", each.rows.index),
            facts.label("observed_here", each.used.site, "taken here", each.used.index),
        )
