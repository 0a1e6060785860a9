"""Names batches that are mixed with their rows in one order, while their targets are taken in another one."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.mixed_partners import mixed_partners
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in mixed_partners(facts):
        yield stands_out(
            f"{as_written(facts, each.mixed)} mixes each row of a batch with another one, by the order of "
            f"{as_written(facts, each.rows)}, and {as_written(facts, each.targets)} takes the targets of the others in "
            f"a second random order: they belong to other rows",
            facts.label("observed_here", each.targets.site, "in a second order", each.targets.index),
            facts.label("value_made_here", each.rows.site, "rows in the first order", each.rows.index),
            facts.label("observed_here", each.mixed.site, "mixed here", each.mixed.index),
        )
