"""Names contrastive losses in which each row counts among its own negatives."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.own_similarities import own_similarities
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in own_similarities(facts):
        yield stands_out(
            f"{as_written(facts, each.pairs)} compares each of {each.rows:,} rows with all of them, also with itself: "
            f"each row has the length 1, so the diagonal of {as_written(facts, each.product)} is 1, the most that a "
            "row can have, and the target names another one",
            facts.label("needed_here", each.pairs.site, "compared here", each.pairs.index),
            facts.label("observed_here", each.product.site, "the product", each.product.index),
        )
