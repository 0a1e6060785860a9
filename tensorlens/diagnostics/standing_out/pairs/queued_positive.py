"""Names contrastive losses whose positives are in the queue of negatives before the loss is computed."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.queued_positives import queued_positives
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in queued_positives(facts):
        key = named(facts, each.keys, each.queued.index)
        yield stands_out(
            f"{as_written(facts, each.joined)} joins the product of each row with its own one of {key} and its "
            f"products with all of a queue, and {as_written(facts, each.queued)} has put {key} into that queue before: "
            "each positive is among the negatives, too",
            facts.label("observed_here", each.queued.site, "put into the queue here", each.queued.index),
            facts.label("needed_here", each.negatives.site, "the negatives", each.negatives.index),
        )
