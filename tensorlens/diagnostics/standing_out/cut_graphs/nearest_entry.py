"""Names lookups of the nearest entry of a table, which pass no gradient on to what the entry was chosen for."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.nearest_entries import nearest_entries
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in nearest_entries(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            yield stands_out(
                f"{as_written(facts, each.lookup)} passes no gradient on to {listed(rows)}: "
                f"{as_written(facts, each.choice)} chooses by their values, and they get gradients on other ways only",
                facts.label("graph_cut_here", each.lookup.site, "read at an index", each.lookup.index),
                facts.label("value_made_here", each.choice.site, "the index", each.choice.index),
                facts.label("needed_here", each.layer.site, "goes on from here without their gradient"),
            )
