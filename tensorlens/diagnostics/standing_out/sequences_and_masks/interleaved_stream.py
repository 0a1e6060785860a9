"""Names reshapes after which each sequence of a batch has every n-th item of a text."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.interleaved_streams import interleaved_streams
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, ordinal
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in interleaved_streams(facts):
        code = as_written(facts, each.reshape)
        yield stands_out(
            f"{code} puts {each.streams:,} consecutive items into each row, and {as_written(facts, each.layer)} runs "
            f"along the rows: each of its sequences has every {ordinal(each.streams)} item. "
            f"`view({each.streams}, -1).t()` gives each of them consecutive ones",
            facts.label("value_made_here", each.reshape.site, "reshaped here", each.reshape.index),
            facts.label("needed_here", each.layer.site, "runs along the rows", each.layer.index),
        )
