"""Names runs of a model that change in place the data that they begin with."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_in_place.changed_starts import changed_starts
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    for each in changed_starts(training.training):
        number = each.change.writes[0].tensor
        yield stands_out(
            f"{as_written(facts, each.change)} changes {named(facts, each.data, each.view.index)} in place, because "
            f"{named(facts, number, each.change.index)} is a view of it: each of {each.runs:,} runs, with steps in "
            "between, begins with what the one before has left there",
            facts.label("modified_here", each.change.site, "changed here, in place", each.change.index),
            facts.label("view_made_here", each.view.site, "a view of it", each.view.index),
        )
