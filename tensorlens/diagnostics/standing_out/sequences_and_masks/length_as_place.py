"""Names indices that take the step after the last one of shorter sequences, as their length is the index."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.lengths_as_places import lengths_as_places
from tensorlens.analysis.training.sequences_and_masks.steps_after_last import steps_after_last
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen = training.facts, set[int]()
    for each in lengths_as_places(facts):
        seen.add(each.taken.site)
        labels = [
            facts.label("value_made_here", each.clamp.site, "the length is the index", each.clamp.index),
            facts.label("needed_here", each.taken.site, "taken here", each.taken.index),
        ]
        one_line = facts.same_line(each.clamp.site, each.taken.site)
        yield stands_out(
            f"{as_written(facts, each.taken)} takes the step whose number is the length, by "
            f"{as_written(facts, each.clamp)}: the last of n steps is number n - 1, and number n is padding, in "
            f"sequences shorter than {each.steps:,}",
            *labels[: 1 if one_line else 2],
        )
    for found in steps_after_last(facts):
        if found.taken.site not in seen:
            yield stands_out(
                f"{as_written(facts, found.taken)} takes the step whose number is the length, for each sequence of a "
                f"batch: the last of n steps is number n - 1, and number n is padding, in sequences shorter than "
                f"{found.steps:,}",
                facts.label("needed_here", found.taken.site, "taken here", found.taken.index),
            )
