"""Names rows that are taken in an order and then in the same order again, where its inverse puts them back."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.orders_taken_twice import orders_taken_twice
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in orders_taken_twice(facts):
        labels = [
            facts.label("observed_here", each.second.site, "taken so again", each.second.index),
            facts.label("value_made_here", each.made.site, "the order is made here", each.made.index),
        ]
        places = prod(facts.tensor(each.order.tensor).shape)
        if each.first.site == each.second.site:
            labels.reverse()
        yield stands_out(
            f"{as_written(facts, each.second)} takes rows in the order of {as_written(facts, each.made)}, and they are "
            f"in it already: taken twice, the order has another row at {each.order.moved:,} of {places:,} "
            f"places than before it, and {named(facts, each.other, each.joined.index)} is in the order before. The "
            "inverse, `argsort()` of the order, puts rows back",
            *labels,
            facts.label("value_made_here", each.first.site, "taken in the order", each.first.index),
            facts.label("observed_here", each.joined.site, "joined with rows in the order before", each.joined.index),
        )
