"""Names masks that make attention look at the padding and hide the tokens."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.hidden_tokens import hidden_tokens, opposite_masks
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in hidden_tokens(facts):
        code, made = as_written(facts, each.call), as_written(facts, each.comparison)
        rule = "attends only where its mask is True" if each.attends else "hides the places where its mask is True"
        yield stands_out(
            f"{code} {rule}, and {made} makes the mask {each.attends is False} at the tokens: they are hidden, and the "
            "padding is left",
            facts.label("needed_here", each.call.site, "the mask is used here", each.call.index),
            facts.label("value_made_here", each.comparison.site, "compared here", each.comparison.index),
        )
    for opposite in opposite_masks(facts):
        layer, fill, mask = opposite.layer, opposite.fill, named(facts, opposite.mask, opposite.layer.index)
        yield stands_out(
            f"{as_written(facts, layer)} hides the places where {mask} is True, and {as_written(facts, fill)} hides "
            "those where it is False",
            facts.label("needed_here", layer.site, "hides where it is True", layer.index),
            facts.label("observed_here", fill.site, "hides where it is False", fill.index),
        )
