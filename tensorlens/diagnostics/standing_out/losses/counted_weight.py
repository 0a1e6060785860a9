"""Names class weights of a loss that are larger for the classes that are there more often."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.losses.counted_weights import counted_weights
from tensorlens.analysis.training.losses.grown_weights import GrownWeights, counted_classes, grown_weights
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for each in counted_weights(facts):
        reported.add(each.loss.site)
        what, they = "the counts of the classes in the targets by a number: the rarer a class is, the less", "it counts"
        if each.is_ratio:
            what = "the number of ones in the targets by the number of zeros: the rarer the ones are, the less"
            they = "they count"
        yield stands_out(
            f"{as_written(facts, each.made)} divides {what} {they} in {as_written(facts, each.loss)}",
            facts.label("value_made_here", each.made.site, "divided here", each.made.index),
            facts.label("needed_here", each.loss.site, "the loss", each.loss.index),
        )
    for grown in grown_weights(facts):
        if grown.loss.site not in reported:
            yield _measured(facts, grown)


def _measured(facts: TraceIndex, grown: GrownWeights) -> StandingOut:
    """Returns the sentence about weights of which only the values show that they grow with the classes."""
    loss, found, made = as_written(facts, grown.loss), grown.found, grown.made
    if found.is_binary:
        zeros, ones = found.counts
        text = (
            f"{loss} has a `pos_weight` of {found.weights[0]:.3g}, about the number of ones in its targets by the "
            f"number of zeros, {ones:,} by {zeros:,}: the rarer the ones are, the less they count"
        )
    else:
        counts = {count: weight for weight, count in counted_classes(found)}
        most, least = max(counts), min(counts)
        text = (
            f"{loss} has weights by class that grow with the number of targets: {counts[most]:.3g} for a class with "
            f"{most:,} of those counted, {counts[least]:.3g} for one with {least:,}: the rarer a class is, the less "
            "it counts"
        )
    where = [] if made is None else [facts.label("value_made_here", made.site, "the weights are made here", made.index)]
    return stands_out(text, facts.label("needed_here", grown.loss.site, "the loss", grown.loss.index), *where)
