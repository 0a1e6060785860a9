"""Names products of log-probabilities and an advantage that is not detached: the product trains the critic, too."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.advantages import advantages
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in advantages(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            made = facts.creator(each.estimate)
            yield stands_out(
                f"{as_written(facts, each.product)} gives {listed(rows)} gradients too: {named(facts, each.estimate)} "
                f"has a graph, and {as_written(facts, each.error)} trains them already",
                facts.label("needed_here", each.product.site, "multiplied with its graph", each.product.index),
                None if made is None else facts.label("value_made_here", made.site, "made here", made.index),
                facts.label("observed_here", each.error.site, "trains it", each.error.index),
            )
