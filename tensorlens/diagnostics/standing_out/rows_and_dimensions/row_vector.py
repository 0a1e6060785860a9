"""Names vectors with one element for each row that broadcast along the columns of a square table."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.row_vectors import row_vectors
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, said = training.facts, set[tuple[str, int] | None]()
    for each in sorted(row_vectors(facts), key=lambda each: each.call.index):
        span, call = facts.span(each.call.site), each.call
        line = None if span is None else (span.file, span.line)
        if line in said:
            continue
        said.add(line)
        size, vector = facts.tensor(each.vector).shape[0], named(facts, each.vector, call.index)
        place = "they were taken from the data with the rows"
        if each.of is not None:
            place = (
                f"{as_written(facts, each.placed)} gives those of {named(facts, each.of, each.placed.index)} to rows"
            )
        where = "along rows" if each.of is not None else "taken with the rows"
        yield stands_out(
            f"{as_written(facts, call)} combines the {size:,} elements of {vector} with the {size:,} "
            f"columns of {named(facts, each.table, call.index)}, of shape {facts.tensor(each.table).shape},"
            f" although they are one for each row: {place}",
            facts.label("value_made_here", call.site, "along columns", call.index),
            facts.label("observed_here", each.placed.site, where, each.placed.index),
        )
