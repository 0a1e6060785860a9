"""Names rows of gradients, one for each pass, that are sums of the gradients so far: nothing clears them in between."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.kept_sums import kept_sums
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in kept_sums(training.training):
        rows = [row for row in training.rows if row.tensor in each.leaves]
        if rows:
            yield stands_out(
                f"{as_written(facts, each.joined)} joins what was read of the gradients of {listed(rows)} after each "
                f"of {each.rows} passes, and nothing clears them in between: from the second on, each is a sum with "
                "those of the passes before it, which no step uses",
                facts.label("accumulated_here", each.filled.site, "adds to the gradients"),
                facts.label("observed_here", each.read.site, "reads the sum", each.read.index),
                facts.label("needed_here", each.joined.site, "joins the readings", each.joined.index),
            )
