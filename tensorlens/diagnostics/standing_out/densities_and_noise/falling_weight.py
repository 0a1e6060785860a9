"""Names trained weights of loss terms that only fall, because nothing in the loss keeps them from falling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.falling_weights import FallingWeight, falling_weights
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    lines: dict[int, list[FallingWeight]] = defaultdict(list)
    for each in falling_weights(training):
        lines[each.product.site].append(each)
    for found in lines.values():
        numbers = {each.parameter for each in found}
        rows = [row for row in training.rows if row.tensor in numbers]
        group, product = rows[0].group, found[0].product
        one = len(rows) == 1
        what = "a term of the loss that is" if one else "terms of the loss that are"
        by = listed(rows) if all(each.weight == each.parameter for each in found) else f"what {listed(rows)} gives"
        yield stands_out(
            f"{as_written(facts, product)} multiplies {what} never negative by {by}, and no loss uses "
            f"{'it' if one else 'them'} otherwise: to lower the weight alone lowers the loss",
            facts.label("value_made_here", product.site, "weighted here", product.index),
            None if group is None else facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here"),
        )
