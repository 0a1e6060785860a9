"""Names decoders that are given the target of a step at the same step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.fed_targets import fed_targets
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in fed_targets(facts):
        yield stands_out(
            f"{as_written(facts, each.taken)} gives the decoder the id of a step before it predicts this id: "
            f"{as_written(facts, each.loss)} compares the result of the step with the same id",
            facts.label("value_made_here", each.taken.site, "the target of the step", each.taken.index),
            facts.label("needed_here", each.lookup.site, "given to the decoder", each.lookup.index),
            facts.label("observed_here", each.loss.site, "compared with it", each.loss.index),
        )
