"""Names losses that compare the gradient of a standardised prediction with slopes that are not divided alike."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.unscaled_slopes import unscaled_slopes
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds forces in their own units, beside energies that are divided by their deviation."""
    facts = training.facts
    for each in unscaled_slopes(facts):
        yield stands_out(
            f"{as_written(facts, each.slope)} compares the gradient of a prediction with values from before "
            f"{as_written(facts, each.spread)}, while {as_written(facts, each.value)} compares the prediction itself "
            "with values that are divided by this deviation: the gradient is not multiplied by it",
            facts.label("observed_here", each.slope.site, "compared with undivided values", each.slope.index),
            facts.label("value_made_here", each.division.site, "divided here", each.division.index),
        )
