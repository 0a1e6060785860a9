"""Names recurrent layers that begin with the state of other rows, which a shuffle has put into the batch before."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.states_of_others import states_of_others
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in states_of_others(facts):
        one_line = facts.same_line(each.taken.site, each.drawn.site)
        yield stands_out(
            f"{as_written(facts, each.layer)} begins with the state that it has left for another batch, and a shuffle "
            "has chosen the rows of both: a row does not go on with the one that has left its state",
            facts.label("needed_here", each.layer.site, "begins with this state", each.layer.index),
            facts.label("value_made_here", each.handed.site, "the state is handed on here", each.handed.index),
            facts.label("observed_here", each.taken.site, "the rows are taken here", each.taken.index),
            None if one_line else facts.label("observed_here", each.drawn.site, "their order", each.drawn.index),
        )
