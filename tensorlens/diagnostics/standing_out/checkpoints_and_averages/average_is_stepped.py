"""Names averages of parameters that an optimizer steps as well, by gradients of their own."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.averaged_parameters import averaged_parameters
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in averaged_parameters(training):
        group = each.rows[0].group
        assert group is not None
        one = len(each.rows) == 1
        yield stands_out(
            f"{as_written(facts, each.write)} writes {listed(each.rows)} from {listed(each.sources)}, and "
            f"`{group.name}` steps {'it' if one else 'them'} by {'a gradient' if one else 'gradients'} of "
            f"{'its' if one else 'their'} own, too",
            facts.label("modified_here", each.write.site, "written here", each.write.index),
            facts.label("optimizer_made_here", group.site, "this optimizer steps the same parameters"),
        )
