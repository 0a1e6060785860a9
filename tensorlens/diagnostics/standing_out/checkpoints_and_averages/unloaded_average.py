"""Names averages that begin with the values from before a checkpoint was loaded, as it has none of them."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.unloaded_averages import unloaded_averages
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in unloaded_averages(training):
        one, word = each.averages == 1, "average" if each.averages == 1 else "averages"
        those = f"an {word}" if one else f"{each.averages:,} {word}"
        a_copy = "a copy of parameters" if one else "copies of parameters"
        yield stands_out(
            f"{those} that {as_written(facts, each.write)} updates began as {a_copy} as they were made, before "
            f"{as_written(facts, each.load)} loaded these, and no line loads the {word}: after {each.updates:,} "
            f"updates, {100 * each.left:.2g} % of {'it' if one else 'each'} is still the first copy",
            facts.label("replaced_here", each.load.site, "the parameters are loaded here"),
            facts.label("value_made_here", each.copied.site, "copied before that", each.copied.index),
            facts.label("modified_here", each.write.site, "averaged here", each.write.index),
        )
