"""Names predictions in the order of a sort that meet values of the same samples in the order before it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.sorted_rows import sorted_rows
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in sorted_rows(facts):
        yield stands_out(
            f"{as_written(facts, each.joined)} joins rows in two orders: {as_written(facts, each.taken)} has put those "
            f"of the prediction into the order of {as_written(facts, each.sort)}, and those of "
            f"{named(facts, each.other, each.joined.index)} are in the order before",
            facts.label("observed_here", each.joined.site, "joined here", each.joined.index),
            facts.label("value_made_here", each.taken.site, "put in order here", each.taken.index),
            facts.label("value_made_here", each.sort.site, "sorted here", each.sort.index),
        )
