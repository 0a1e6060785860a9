"""Names lines that keep the gradients of several passes without a copy, although each pass fills the same tensor."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.kept_gradients import kept_gradients
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in kept_gradients(training.training):
        yield stands_out(
            f"{as_written(facts, each.kept)} is kept after each pass, but the passes fill one tensor in turn: "
            f"{as_written(facts, each.read)} reads the last gradient {each.count} times",
            facts.label("shared_here", each.kept.site, "kept without a copy", each.kept.index),
            facts.label("cleared_here", each.cleared.site, "set to zero in place", each.cleared.index),
            facts.label("accumulated_here", each.filled.site, "filled again"),
            facts.label("needed_here", each.read.site, "reads the last gradient", each.read.index),
        )
