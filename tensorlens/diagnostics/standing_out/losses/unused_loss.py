"""Names losses of a loop of which only the last is used, and terms with a graph that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.unused_losses import forgotten_terms, last_losses_only
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    for each in last_losses_only(training.training):
        yield stands_out(
            f"{as_written(facts, each.call)} computes {each.losses} losses or more before each of {each.passes:,} "
            "backward passes, and each pass uses only the last of them",
            facts.label("value_made_here", each.call.site, "the others are dropped", each.call.index),
            facts.label("needed_here", each.backward.site, "uses the last one"),
        )
    for term in forgotten_terms(training.training):
        rows = [row for row in training.rows if row.tensor in term.leaves]
        if rows:
            yield stands_out(
                f"{as_written(facts, term.call)} has a graph to {listed(rows)}, and no line reads any of its "
                f"{term.times:,} results: no loss contains them",
                facts.label("value_made_here", term.call.site, "nothing reads the result", term.call.index),
            )
