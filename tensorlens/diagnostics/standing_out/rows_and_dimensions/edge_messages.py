"""Names sums of messages along the edges of a graph that share one softmax, or that bring each node its own row."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.edge_sums import own_rows, shared_softmaxes
from tensorlens.analysis.training.rows_and_dimensions.measured_sums import measured_sums
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in shared_softmaxes(facts):
        yield stands_out(
            f"{as_written(facts, each.softmax)} gives {each.edges:,} values a sum of 1 together, and "
            f"{as_written(facts, each.summed)} sums them for {each.nodes:,} places: the weights of one place do not "
            f"have a sum of 1, and depend on those of all others",
            facts.label("observed_here", each.softmax.site, "over all values", each.softmax.index),
            facts.label("observed_here", each.summed.site, "summed here", each.summed.index),
        )
    known = list(own_rows(facts))
    sites = {each.summed.site for each in known}
    for own in (*known, *(each for each in measured_sums(facts) if each.summed.site not in sites)):
        yield stands_out(
            f"{as_written(facts, own.summed)} adds the rows that {as_written(facts, own.taken)} takes to the places of "
            f"the same index: each place gets only its own row, and the model takes no rows with the other index of "
            f"the pair",
            facts.label("observed_here", own.summed.site, "added here", own.summed.index),
            facts.label("value_made_here", own.taken.site, "taken here", own.taken.index),
        )
