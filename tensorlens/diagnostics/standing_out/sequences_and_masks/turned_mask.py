"""Names masks of bools with which each position attends to the later ones only."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.turned_masks import turned_masks
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in turned_masks(facts):
        mask = named(facts, each.mask, each.call.index)
        does = "attends where its mask of bools is True" if each.attends else "hides where its mask of bools is True"
        does = "adds very low numbers to scores" if each.is_added else does
        seen = "itself and those after it" if each.itself else "those after it"
        yield stands_out(
            f"{as_written(facts, each.call)} {does}: with {mask}, each position sees only {seen}"
            f"{', and the last one sees none' if each.is_sure and not each.itself else ''}",
            facts.label("needed_here", each.call.site, "the mask is used here", each.call.index),
            facts.label("value_made_here", each.triangle.site, "made here", each.triangle.index),
        )
