"""Names targets of a cross entropy whose rows do not add up to 1, as of a label smoothing or of mixed labels."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.target_sums import target_sums
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in target_sums(facts):
        if each.total.unknown:
            (key, factor), number = each.total.unknown[0], each.total.number
            name = key if isinstance(key, str) else "the weight of each row"
            much = f"{number:g} {'+' if factor > 0 else '-'} {abs(factor):g} times {name}"
        else:
            much = f"{each.total.number:g}"
        yield stands_out(
            f"{as_written(facts, each.made)} makes targets whose rows add up to {much}, and not to 1: "
            f"{as_written(facts, each.loss)} takes them as probabilities",
            facts.label("value_made_here", each.made.site, "put together here", each.made.index),
            facts.label("needed_here", each.loss.site, "used here", each.loss.index),
        )
