"""Names scores that a ranking loss compares with others, although gradients were off where they were computed."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.compared_constants import compared_constants
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in compared_constants(training.training):
        rows = [row for row in training.rows if row.tensor in each.trained]
        if rows:
            at, switch = each.compared.index, facts.mode_switch(each.cut.index)
            yield stands_out(
                f"{as_written(facts, each.compared)} compares {named(facts, each.scores, at)} with "
                f"{named(facts, each.constant, at)}, which is a constant, although it is computed from {listed(rows)}, "
                f"which the run trains: gradients are off at {as_written(facts, each.cut)}",
                facts.label("value_made_here", each.compared.site, "compared here", at),
                facts.label("grad_mode_off_here", each.cut.site, "computed without a graph", each.cut.index),
                None if switch is None else facts.label("grad_mode_off_here", switch.site, "switched off here"),
                facts.label("needed_here", each.backward.site, "backward"),
            )
