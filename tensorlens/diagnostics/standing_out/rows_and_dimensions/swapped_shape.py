"""Names reshapes that exchange the sizes of two dimensions without moving a number, where a transpose would."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.swapped_shapes import swapped_shapes
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in swapped_shapes(facts) if training.training.steps else ():
        first, second = each.dimensions
        yield stands_out(
            f"{as_written(facts, each.reshape)} makes shape {each.after} of {each.before} and moves no number: it does "
            f"not exchange dimensions {first} and {second}, as `transpose({first}, {second})` does",
            facts.label("value_made_here", each.reshape.site, "reshaped here", each.reshape.index),
            facts.label("observed_here", each.made.site, "made here", each.made.index),
        )
