"""Names loads whose values the first step overwrites with those of tensors into which nothing was loaded."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.left_masters import left_masters
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for found, loaded in left_masters(training):
        load, write, made = found[0].load, found[0].write, found[0].made
        yield stands_out(
            f"{as_written(facts, write)} overwrites {len(found)} of {loaded} tensors that {as_written(facts, load)} "
            "has loaded, after a step, with copies of them that were made before it, and that only steps have changed "
            "since",
            facts.label("modified_here", write.site, "overwrites what is loaded", write.index),
            facts.label("state_changed_here", load.site, "loaded here", load.index),
            facts.label("value_made_here", made.site, "copied here", made.index),
        )
