"""Names sums over the rows before each row of a batch, where a shuffle has put the rows into their order."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.shuffled_cumulations import shuffled_cumulations
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in shuffled_cumulations(facts):
        yield stands_out(
            f"{as_written(facts, each.call)} adds up, for each row of a batch, the rows before it, and the rows are in "
            f"a random order, in which {as_written(facts, each.taken)} takes them: nothing sorts them in between",
            facts.label("value_made_here", each.call.site, "adds up the rows before", each.call.index),
            facts.label("observed_here", each.taken.site, "takes rows in a random order", each.taken.index),
            facts.label("value_made_here", each.drawn.site, "the order is drawn here", each.drawn.index),
        )
