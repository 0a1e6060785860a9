"""Names gradients that a pass leaves in parameters of another optimizer, whose step uses them with its own."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.leftover_gradients import left_gradients
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in left_gradients(training.training):
        rows = [row for row in training.rows if row.tensor in each.leaves]
        if rows:
            step = "a step" if each.step is None else f"`{each.step.op}()`"
            text = f"{step} uses sums of gradients of {listed(rows)}: a part is left from a pass after which"
            yield stands_out(
                f"{text} `{each.between.op}()` has stepped other parameters",
                facts.label("accumulated_here", each.first.site, "fills them too, and nothing clears them"),
                facts.label("needed_here", each.second.site, "adds to them"),
                None if each.step is None else facts.label("state_changed_here", each.step.site, "uses the sums"),
            )
