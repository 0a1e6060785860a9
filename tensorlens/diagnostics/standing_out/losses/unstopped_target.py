"""Names losses that only make two results of the same parameters alike, where both have a graph."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.unstopped_targets import unstopped_targets
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in unstopped_targets(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            yield stands_out(
                f"the loss only makes two results alike, as {as_written(facts, each.term)} does, and both have a graph "
                f"to {listed(rows)}: it is the least where these give the same for all samples",
                facts.label("needed_here", each.term.site, "compared here", each.term.index),
                facts.label("accumulated_here", each.backward.site, "backward", each.backward.index),
            )
