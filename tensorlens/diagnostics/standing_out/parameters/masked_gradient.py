"""Names lines that set parts of gradients to zero, where weight decay moves the parts all the same."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.masked_gradients import masked_gradients
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in masked_gradients(training):
        group = each.rows[0].group
        assert group is not None
        yield stands_out(
            f"{as_written(facts, each.change)} sets parts of the gradients of {listed(each.rows)} to zero, and "
            f"`{group.name}` moves these parts all the same, unless they are zero themselves: its `weight_decay` is "
            f"{each.decay:g}",
            facts.label("modified_here", each.change.site, "set to zero here", each.change.index),
            facts.label("optimizer_made_here", group.site, "the optimizer is made here"),
        )
