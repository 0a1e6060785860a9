"""Names lines that join a full memory with new entries, and then cut the new ones off again."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_in_place.filled_memories import filled_memories
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in filled_memories(training.training):
        size = facts.tensor(each.cut.outputs[0].tensor).shape[each.dimension]
        yield stands_out(
            f"{as_written(facts, each.cut)} keeps {size:,} entries of dimension {each.dimension}, and "
            f"{named(facts, each.kept, each.joined.index)}, an earlier result of this line, already has as many: "
            f"{each.times:,} times nothing of {named(facts, each.new, each.joined.index)} is kept",
            facts.label("value_made_here", each.cut.site, "the new entries are cut off", each.cut.index),
        )
