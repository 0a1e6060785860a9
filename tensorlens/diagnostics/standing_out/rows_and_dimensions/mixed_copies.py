"""Names reshapes that take rows apart in another order than the one that they were put together in."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.mixed_rows import mixed_rows
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in mixed_rows(facts):
        yield stands_out(
            f"{as_written(facts, each.reshape)} makes {each.after} of {each.order[0] * each.order[1]:,} rows, and "
            f"{as_written(facts, each.made)} has put them together as {each.order}: no row moves, so row [i, j] of "
            "the one is not row [j, i] of the other",
            facts.label("value_made_here", each.reshape.site, "taken apart here", each.reshape.index),
            facts.label("observed_here", each.made.site, "put together here", each.made.index),
        )
