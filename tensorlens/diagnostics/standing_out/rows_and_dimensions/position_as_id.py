"""Names positions among some rows of a table, as those of a pool, that are used as ids of all its rows."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.part_positions import PartPositions, part_positions
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    yield from (_sentence(training, each) for each in part_positions(facts))


def _sentence(training: MeasuredTraining, found: PartPositions) -> StandingOut:
    facts, used, chosen, part = training.facts, found.used, found.chosen, found.part
    counted = facts.tensor(chosen.inputs[0].tensor).shape[0]
    table = named(facts, part.table.tensor, part.taken.index)
    place = found.joined or used
    joined = f", which {as_written(facts, found.joined)} joins with ids" if found.joined is not None else ""
    return stands_out(
        f"{as_written(facts, used)} uses as ids of all {facts.tensor(part.table.tensor).shape[0]:,} rows of {table} "
        f"the positions of {as_written(facts, chosen)}{joined}: they count the {counted:,} rows that "
        f"{as_written(facts, part.taken)} takes",
        facts.label("observed_here", place.site, "positions become ids here", place.index),
        facts.label("value_made_here", chosen.site, "positions counted here", chosen.index),
        facts.label("value_made_here", part.taken.site, "some rows taken here", part.taken.index),
    )
