"""Names derivatives of the sum of several outputs, in a loss that uses the outputs one by one."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.training.gradients.summed_columns import summed_columns
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.diagnostics.standing_out.gradients import summed_derivative
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    said = {label.span for each in summed_derivative.find(training) for label in each.labels[:1]}
    for each in summed_columns(facts):
        gradient, site = each.gradient, facts.trace.sites[each.gradient.site]
        if site.span in said:
            continue
        called = caller_lines(facts.trace).line(gradient) if not site.targets else None
        yield stands_out(
            f"{as_written(facts, gradient)} gives the derivatives of the sum of the "
            f"{facts.tensor(each.outputs).shape[-1]} columns of {named(facts, each.outputs, gradient.index)}, not "
            f"those of one column, although {as_written(facts, each.taken)} takes one column of the outputs",
            facts.label("value_made_here", gradient.site, "added up here", gradient.index),
            None if called is None else Label("called_here", called, "called here"),
            facts.label("observed_here", each.taken.site, "taken here", each.taken.index),
        )
