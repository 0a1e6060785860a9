"""Names rows and dimensions that a reshape, an index or an order mixes."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.rows_and_dimensions import (
    default_dimension,
    edge_messages,
    mixed_apart,
    mixed_by_reshape,
    mixed_copies,
    order_taken_twice,
    position_as_id,
    reshaped_array,
    row_vector,
    shuffled_cumulation,
    shuffled_result,
    sorted_predictions,
    split_row,
    swapped_shape,
    turned_alone,
    unplaced_rows,
    unused_part,
)

FINDERS: tuple[Finder, ...] = (
    unused_part.find,
    row_vector.find,
    sorted_predictions.find,
    order_taken_twice.find,
    position_as_id.find,
    shuffled_cumulation.find,
    shuffled_result.find,
    mixed_by_reshape.find,
    reshaped_array.find,
    mixed_copies.find,
    swapped_shape.find,
    split_row.find,
    default_dimension.find,
    unplaced_rows.find,
    edge_messages.find,
    turned_alone.find,
    mixed_apart.find,
)
