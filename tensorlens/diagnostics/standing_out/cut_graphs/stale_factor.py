"""Names values of a trained parameter that a line computes once, and that losses use after its steps."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.stale_factors import stale_factors
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in stale_factors(training.training):
        row = training.row(each.parameter)
        if row is None or not row.is_stepped:
            continue
        yield stands_out(
            f"{as_written(facts, each.made)} computes a value of {listed([row])} once, before its first step, and "
            f"{as_written(facts, each.used)} uses this value after {each.steps:,} steps of it",
            facts.label("value_made_here", each.made.site, "computed once", each.made.index),
            facts.label("needed_here", each.used.site, "used after the steps", each.used.index),
        )
