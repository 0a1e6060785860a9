"""Names scores that a mask sets to a number near others: the softmax after it gives them a weight."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.counted_masks import counted_masks
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in counted_masks(facts):
        yield stands_out(
            f"the scores that {as_written(facts, each.fill)} sets to {each.value:g} still count in "
            f"{as_written(facts, each.softmax)}, as other scores near {each.value:g} do: `float('-inf')` has no weight",
            facts.label("value_made_here", each.fill.site, "masked here", each.fill.index),
            facts.label("needed_here", each.softmax.site, "the softmax", each.softmax.index),
        )
