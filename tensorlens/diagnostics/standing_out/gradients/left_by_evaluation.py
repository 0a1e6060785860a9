"""Names backward passes in eval mode whose gradients the script only looks at, and that the next step uses as well.

So it is if a callback runs backward on a validation loss after a step, and nothing clears the gradients afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.evaluating_passes import evaluating_passes
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import text_of


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in evaluating_passes(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            code = text_of(facts.trace.sources[each.switched.file], each.switched)
            yield stands_out(
                f"{each.steps:,} of {each.total:,} steps use sums of gradients of {listed(rows)}: a part is left from "
                f"a pass after `{code}`, whose gradients the script reads and does not clear",
                facts.label("accumulated_here", each.first.site, "fills them"),
                Label("mode_entered_here", each.switched, "switches to eval mode"),
                facts.label("observed_here", each.read, "reads them"),
                facts.label("needed_here", each.other.site, "adds to them"),
                facts.label("state_changed_here", each.step.site, "uses the sums"),
            )
