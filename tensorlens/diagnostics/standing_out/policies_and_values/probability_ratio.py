"""Names clipped ratios of probabilities whose old probabilities have a graph, or are computed anew each time."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.probability_ratios import odd_ratios
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in odd_ratios(training.training):
        code, old = as_written(facts, each.ratio), named(facts, each.old, each.ratio.index)
        if each.kind == "graph":
            text = f"{code} divides by old probabilities with a graph: {old} leads to the parameters of the new ones, "
            text += "and its gradient has the opposite sign"
        elif each.kind == "again":
            text = f"{code} divides by probabilities that are computed again on the same values after steps: {old} has "
            text += (
                f"been of {each.passes:,} or more states of the parameters in turn. The ratio begins at 1 each time, "
            )
            text += "and its clip limits only the steps since then"
        else:
            passes = f"each of the {each.passes:,} passes looked at"
            text = (
                f"{code} divides by probabilities of the present parameters in {passes}: {old} is computed anew after "
            )
            text += "each step, so the ratio of equal inputs is 1, and its clip never acts"
        yield stands_out(
            text,
            facts.label("needed_here", each.ratio.site, "the ratio", each.ratio.index),
            facts.label("value_made_here", each.made.site, "the old ones are computed here", each.made.index),
            facts.label("shared_here", each.alias.site, "shares memory with the parameters", each.alias.index)
            if each.alias is not None
            else None,
        )
