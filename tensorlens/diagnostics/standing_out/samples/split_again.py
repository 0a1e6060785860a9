"""Names rows to evaluate on that come from another permutation than the rows to train on."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.samples.split_twice import split_twice
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in split_twice(training):
        one, other = each.evaluated, each.trained
        table = named(facts, one.taken.inputs[0].tensor, one.taken.index)
        yield stands_out(
            f"{as_written(facts, one.taken)} evaluates on {one.rows:,} rows of {table}, a part of another permutation "
            f"of its {each.samples:,} rows than the one that has the {other.rows:,} rows to train on: about "
            f"{100 * other.rows / each.samples:.0f} % of them are among these",
            facts.label("value_made_here", one.cut.site, "the part to evaluate on", one.cut.index),
            facts.label("value_made_here", one.drawn.site, "the second permutation", one.drawn.index),
            facts.label("value_made_here", other.drawn.site, "the first permutation", other.drawn.index),
            facts.label("observed_here", one.taken.site, "evaluated here", one.taken.index),
        )
