"""Names operations of a loss or a metric that broadcast predictions and targets to all their pairs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorlens.analysis.training.losses.array_comparisons import array_comparisons
from tensorlens.analysis.training.losses.broadcast_pairs import broadcast_pairs
from tensorlens.analysis.training.losses.paired_answers import paired_answers
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import Label, StandingOut


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
    for each in paired_answers(facts):
        answers, labels = (
            f"{named(facts, number, each.call.index)} of shape {facts.tensor(number).shape}"
            for number in (each.answers, each.labels)
        )
        rows = facts.tensor(each.labels).shape[0]
        yield stands_out(
            f"{as_written(facts, each.call)} compares each of {answers} with all of {labels}: the number that is made "
            f"of it is of {rows * rows:,} pairs, and {rows:,} are of one sample",
            facts.label("value_made_here", each.call.site, "compared here", each.call.index),
            facts.label("needed_here", each.reduced.site, "one number", each.reduced.index),
        )
    for compared in array_comparisons(facts):
        n = "n" if compared.rows is None else str(compared.rows)
        what = f"`{compared.answers}` of shape ({n}, 1) with all of `{compared.labels}` of shape ({n},)"
        yield stands_out(
            f"`{compared.text}` compares each of {what}: the number that is made of it is of all pairs, and not of the "
            "answer and the label of each sample",
            Label("value_made_here", compared.at, "compared here"),
            facts.label("value_made_here", compared.left.site, "the answers", compared.left.index),
        )
