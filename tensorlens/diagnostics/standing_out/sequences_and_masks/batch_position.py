"""Names tables of positions that give each sample of a batch one row, because the first dimension is not time."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.batch_positions import batch_positions
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in batch_positions(facts):
        yield stands_out(
            f"{as_written(facts, each.added)} adds one row of a table of shape {each.table} to each of the "
            f"{each.batch[0]:,} rows of the first dimension, the same to all {each.batch[1]:,} positions of a row: the "
            f"layer after it takes the first dimension of {each.batch} as the batch",
            facts.label("value_made_here", each.added.site, "added here", each.added.index),
            facts.label("needed_here", each.layer.site, "the layer", each.layer.index),
        )
