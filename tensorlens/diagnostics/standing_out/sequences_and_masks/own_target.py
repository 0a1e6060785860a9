"""Names losses of a causal model whose targets are the ids that it is given, without a shift."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.own_targets import own_targets
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in own_targets(facts):
        yield stands_out(
            f"{as_written(facts, each.loss)} compares each of {each.steps:,} steps with the id that "
            f"{as_written(facts, each.lookup)} gives the model at the same step, without a shift: it need not predict "
            "a later one",
            facts.label("observed_here", each.loss.site, "the target is the input", each.loss.index),
            facts.label("value_made_here", each.lookup.site, "the input of the model", each.lookup.index),
            None
            if each.made is None
            else facts.label("value_made_here", each.made.site, "the targets are made here", each.made.index),
        )
