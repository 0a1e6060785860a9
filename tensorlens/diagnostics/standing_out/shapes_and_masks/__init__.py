"""Names dimensions, reshapes and masks that mix what they should keep apart."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.shapes_and_masks import (
    added_mask,
    batch_position,
    counted_mask,
    default_dimension,
    hidden_token,
    ignored_end,
    interleaved_stream,
    last_of_padded,
    mixed_by_reshape,
    mixed_copies,
    padded_id,
    padding_position,
    position_as_id,
    row_vector,
    run_along_batch,
    shifted_partner,
    shuffled_cumulation,
    sorted_predictions,
    split_row,
    swapped_shape,
    turned_mask,
    unused_part,
)

FINDERS: tuple[Finder, ...] = (
    unused_part.find,
    counted_mask.find,
    added_mask.find,
    batch_position.find,
    turned_mask.find,
    row_vector.find,
    sorted_predictions.find,
    position_as_id.find,
    shuffled_cumulation.find,
    run_along_batch.find,
    last_of_padded.find,
    mixed_by_reshape.find,
    mixed_copies.find,
    shifted_partner.find,
    swapped_shape.find,
    split_row.find,
    default_dimension.find,
    hidden_token.find,
    padding_position.find,
    interleaved_stream.find,
    padded_id.find,
    ignored_end.find,
)
