"""Names reshapes that give each head some rows of a tensor, not a part of the features of each row."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.split_rows import split_rows
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in split_rows(facts) if training.training.steps else ():
        (rows, size), heads = each.after[-2:], each.heads
        dimension = len(each.before) - 2
        is_apart = len(each.after) > len(each.before)
        sliced = dimension if is_apart else dimension - 1
        share = f"{rows // heads}" if rows % heads == 0 else "a part"
        wanted = ", ".join(map(str, (*each.before[:-1], heads, size)))
        merged = "" if is_apart else f".reshape({', '.join(map(str, each.after))})"
        yield stands_out(
            f"{as_written(facts, each.reshape)} makes shape {each.after} of {each.before} and keeps the order of the "
            f"numbers: each slice of dimension {sliced} holds {share} of the {rows} rows of dimension "
            f"{dimension}, not a part of each row, as "
            f"`view({wanted}).transpose({dimension}, {dimension + 1}){merged}` gives it",
            facts.label("value_made_here", each.reshape.site, "reshaped here", each.reshape.index),
        )
