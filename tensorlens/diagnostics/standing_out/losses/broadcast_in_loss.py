"""Names operations of a loss that broadcast predictions and targets to all their pairs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorlens.analysis.training.broadcast_pairs import broadcast_pairs
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for pair in broadcast_pairs(facts):
        call = pair.call
        operands = [
            f"{named(facts, number, call.index)} of shape {facts.tensor(number).shape}"
            for number in (pair.prediction, pair.target)
        ]
        yield stands_out(
            f"{as_written(facts, call)} broadcasts {' and '.join(operands)} to shape {pair.shape}: "
            f"{prod(pair.shape):,} elements",
            facts.label("value_made_here", call.site, "broadcast here", call.index),
            facts.label("needed_here", pair.backward.site, "backward"),
        )
