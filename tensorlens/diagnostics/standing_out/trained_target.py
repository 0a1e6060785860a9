"""Names losses whose target has a graph, as that of a value of the next state without `detach()`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.trained_targets import trained_targets
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in trained_targets(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            yield stands_out(
                f"{as_written(facts, each.error)} gives {listed(rows)} gradients through both sides of its difference: "
                f"{named(facts, each.target, each.error.index)}, which its target is computed from, has a graph",
                facts.label("graph_built_here", each.made.site, "has a graph", each.made.index),
                facts.label("needed_here", each.error.site, "the loss", each.error.index),
            )
