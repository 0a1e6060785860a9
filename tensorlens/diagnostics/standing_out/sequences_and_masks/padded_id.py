"""Names embeddings that get the id of their padding between other ids: an item has the id of the padding."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.put_ids import puts_in
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.report import StandingOut

_FEWEST = 3  # rows
_LEAST = 0.01  # of the rows
_MOST = 0.3  # of the places: a board has empty ones in between
_OUTER = 2  # times as many paddings are before and after the other ids: else the id stands for what is missing
_SPREAD = 0.5  # of the columns: parts of a row that are padded each end at the same few


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in facts.trace.inspection.padded_ids:
        row = training.row(each.tensor)
        is_item = each.inner >= max(_FEWEST, _LEAST * each.rows) and each.padded <= _MOST * each.places
        is_padding = each.outer >= _OUTER * each.padded and each.columns >= _SPREAD * min(each.runs, each.width - 2)
        is_item = is_item and is_padding and not puts_in(facts, each.tensor, each.padding)
        if each.number != training.measured.number or row is None or not row.is_stepped or not is_item:
            continue
        made, code = facts.creator(each.tensor), code_at(facts, each.site, "the embedding")
        yield stands_out(
            f"{code} gets id {each.padding}, its `padding_idx`, between other ids in {each.inner:,} of {each.rows:,} "
            f"rows: row {each.padding} of `{row.name}` gets no gradient there",
            facts.label("value_made_here", each.site, "looked up here"),
            None if made is None else facts.label("leaf_made_here", made.site, "made here", made.index),
        )
