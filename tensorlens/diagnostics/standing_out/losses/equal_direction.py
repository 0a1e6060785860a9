"""Names symmetric contrastive losses with one direction counted twice, and the other not at all."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.equal_directions import equal_directions
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in equal_directions(facts):
        table = named(facts, each.table, each.second.index)
        yield stands_out(
            f"the loss has {as_written(facts, each.first)} twice: {as_written(facts, each.second)} is given the same "
            f"{table} of shape ({each.rows:,}, {each.rows:,}) and the same target. The rows of {table} are compared, "
            "its columns are not: these are the rows of its transpose",
            facts.label("needed_here", each.second.site, "the second time", each.second.index),
            facts.label("observed_here", each.first.site, "the first time", each.first.index),
        )
