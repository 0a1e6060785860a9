"""Names backward passes that are made for the gradient of an input, and whose other gradients a step uses as well."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.passes_for_inputs import passes_for_inputs
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
                f"`{each.step.op}()` uses the gradients that {each.count} backward passes for `{name}.grad` leave in "
                f"{listed(rows)}, with those of the loss",
                facts.label("accumulated_here", each.first.site, "fills the parameters, too"),
                facts.label("accumulated_here", each.other.site, "the loss adds its own"),
                facts.label("needed_here", each.step.site, "uses the sums"),
            )
