"""Names results that are kept in the order of a shuffle, and used for the rows of a table in its own order."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.shuffled_results import ShuffledResults, shuffled_results
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    if training.facts.trace.inspection.switches:
        return
    yield from (_sentence(training, each) for each in shuffled_results(training.facts))


def _sentence(training: MeasuredTraining, found: ShuffledResults) -> StandingOut:
    facts = training.facts
    table = named(facts, found.table, found.used.index)
    return stands_out(
        f"{as_written(facts, found.kept)} keeps results for rows of {table} in the order of a shuffle, and these are "
        f"then used with the rows of {table} in its own order: a result meets another row than the one that it is for",
        facts.label("value_made_here", found.kept.site, "kept here", found.kept.index),
        facts.label("value_made_here", found.drawn.site, "shuffled here", found.drawn.index),
        facts.label("observed_here", found.used.site, "used with rows in another order", found.used.index),
    )
