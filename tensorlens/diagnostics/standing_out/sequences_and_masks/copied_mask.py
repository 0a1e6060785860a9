"""Names masks whose copies for the heads are in another order than the heads of the batch."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.copied_masks import copied_masks
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in copied_masks(facts):
        yield stands_out(
            f"{as_written(facts, each.made)} puts copies together in the order {each.order}, and the "
            f"{each.order[0] * each.order[1]:,} rows of {as_written(facts, each.user)} have the order {each.rows}: "
            "most rows get the copy of another one",
            facts.label("value_made_here", each.made.site, "copied here", each.made.index),
            facts.label("needed_here", each.user.site, "used here", each.user.index),
        )
