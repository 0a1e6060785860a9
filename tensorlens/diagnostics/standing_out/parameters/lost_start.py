"""Names initial values that a later line of the same function overwrites together with all others."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.lost_starts import lost_starts
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not is_complete(facts.trace):
        return
    for each in lost_starts(training):
        them = "it" if len(each.rows) == 1 else "them"
        yield stands_out(
            f"{as_written(facts, each.first)} sets {listed(each.rows)}, and {as_written(facts, each.second)}, which "
            f"sets {each.overwritten:,} parameters, overwrites {them}: no recorded call in between reads {them}",
            facts.label("called_here", each.caller, "overwritten from here"),
            facts.label("value_made_here", each.first.site, "set here", each.first.index),
            facts.label("modified_here", each.second.site, "overwritten here", each.second.index),
        )
