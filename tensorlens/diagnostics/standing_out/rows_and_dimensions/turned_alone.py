"""Names pictures and targets of the same places that are turned round independently of each other."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.turned_pairs import TurnedPairs, turned_pairs
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in turned_pairs(facts):
        if each.turn is None or each.other is None:
            continue
        turn, other = as_written(facts, each.turn), as_written(facts, each.other)
        how = f"the inputs, and {turn} their targets" if turn != other else "inputs and targets"
        caller = facts.trace.sites[each.turn.site].caller if each.turn.site == each.other.site else None
        yield stands_out(
            f"{other} turns {how}, each by a chance of its own: {_counts(each)}",
            facts.label("observed_here", each.turn.site, "turns targets", each.turn.index),
            facts.label("observed_here", each.other.site, "turns inputs", each.other.index),
            *([] if caller is None else [facts.label("called_here", caller, "called first here")]),
        )


def _counts(each: TurnedPairs) -> str:
    if not each.data:
        return "one draw chooses rows of the inputs, and another one rows of the targets"
    return f"of the pairs of the loss that were looked at, {each.data:,} inputs and {each.target:,} targets alone"
