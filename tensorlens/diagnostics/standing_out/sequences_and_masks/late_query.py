"""Names causal masks that count from the first key, where the queries are the last positions."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.late_queries import late_queries
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in late_queries(facts):
        hidden = each.keys - each.queries
        yield stands_out(
            f"{as_written(facts, each.call)} lets the first of {each.queries:,} queries see the first of {each.keys:,} "
            f"keys only, the next one two, and so on, although {as_written(facts, each.place)} has their own "
            f"positions at the end: no query sees the last {hidden:,} keys",
            facts.label("value_made_here", each.call.site, "counts from the first key", each.call.index),
            facts.label("observed_here", each.place.site, "their positions are the last here", each.place.index),
        )
