"""Names symmetric contrastive losses with one direction counted twice, and the other not at all."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.equal_directions import equal_directions
from tensorlens.analysis.training.pairs.equal_tables import EqualTables, equal_tables
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen = training.facts, set[int]()
    for each in equal_directions(facts):
        seen |= {each.first.index, each.second.index}
        table = named(facts, each.table, each.second.index)
        yield stands_out(
            f"the loss has {as_written(facts, each.first)} twice: {as_written(facts, each.second)} is given the same "
            f"{table} of shape ({each.rows:,}, {each.rows:,}) and the same target. The rows of {table} are compared, "
            "its columns are not: these are the rows of its transpose",
            facts.label("needed_here", each.second.site, "the second time", each.second.index),
            facts.label("observed_here", each.first.site, "the first time", each.first.index),
        )
    for tables in equal_tables(facts):
        if seen.isdisjoint((tables.first.index, tables.second.index)):
            yield _of_tables(facts, tables)


def _of_tables(facts: TraceIndex, found: EqualTables) -> StandingOut:
    one, other = found.products
    twice = f"the same {found.rows:,} rows: it counts one direction twice. The columns"
    if one.index == other.index:
        text = f"after {as_written(facts, found.first)}, {as_written(facts, found.second)} compares in"
        text = f"{text} {as_written(facts, one)} {twice}"
        labels = [(found.second, "the second time"), (found.first, "the first time")]
    else:
        text = f"{as_written(facts, one)} and {as_written(facts, other)} have the same values, and the loss compares"
        text = f"{text} in both {twice}"
        labels = [(other, "has the values of the other table"), (one, "the other one")]
    return stands_out(
        f"{text} are not compared: these are the rows of the transpose",
        *(facts.label("observed_here", call.site, words, call.index) for call, words in labels),
    )
