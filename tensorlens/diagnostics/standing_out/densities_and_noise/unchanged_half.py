"""Names columns of the data that no layer of a flow changes."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.training.densities_and_noise.unchanged_columns import unchanged_columns
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in unchanged_columns(facts):
        called = caller_lines(facts.trace).line(each.joined)
        yield stands_out(
            f"{as_written(facts, each.cut)} gives {as_written(facts, each.joined)} the same {each.columns} of the "
            f"{each.width} columns of the data at each of {each.layers} layers: none changes them before "
            f"{as_written(facts, each.used)} takes all columns",
            facts.label("value_made_here", each.cut.site, "taken here", each.cut.index),
            facts.label("observed_here", each.joined.site, "joined here", each.joined.index),
            None if called is None else Label("called_here", called, "called here"),
            facts.label("needed_here", each.used.site, "used here", each.used.index),
        )
