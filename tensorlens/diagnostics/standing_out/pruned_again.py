"""Names masks that set elements of parameters to zero, and that nothing applies again after the steps that follow."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pruned_weights import pruned_weights
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or facts.trace.callbacks.registrations:
        return
    for each in pruned_weights(training):
        group = each.rows[0].group
        assert group is not None
        yield stands_out(
            f"{as_written(facts, each.write)} multiplies {listed(each.rows)} by a mask before {each.steps:,} steps of "
            f"`{group.name}`, which change all elements that have a gradient; nothing reads the mask after it",
            facts.label("modified_here", each.write.site, "masked once", each.write.index),
            facts.label("optimizer_made_here", group.site, "its steps follow"),
        )
