"""Names backward passes that are made for the gradient of an input, and whose other gradients a step uses as well."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.passes_for_inputs import passes_for_inputs
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in passes_for_inputs(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            name = facts.name(each.input, each.first.index)
            yield stands_out(
                f"`{each.step.op}()` uses the gradients of {listed(rows)} from {each.count} backward passes that also "
                f"fill `{name}.grad`, which the script reads, with those of a pass that does not",
                facts.label("accumulated_here", each.first.site, "fills the parameters, too"),
                facts.label("accumulated_here", each.other.site, "another pass adds to them"),
                facts.label("needed_here", each.step.site, "uses the sums"),
            )
