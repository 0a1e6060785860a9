"""Names tensors that a line changes in place, where other names or views have the same memory, or none has it."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.changed_in_place import (
    changed_argument,
    changed_by_other_name,
    changed_copy,
    changed_output,
    changed_start,
    crossed_attribute,
    data_changed_in_place,
    expanded_write,
    filled_memory,
    idle_restore,
    item_changed_in_place,
    kept_item,
    lost_addition,
    lost_fractions,
    one_array,
    one_buffer,
    outdated_arrays,
    repeated_item,
    self_update,
    shuffled_views,
    two_attributes,
    write_to_copy,
)

FINDERS: tuple[Finder, ...] = (
    self_update.find,
    idle_restore.find,
    repeated_item.find,
    outdated_arrays.find,
    one_array.find,
    crossed_attribute.find,
    two_attributes.find,
    one_buffer.find,
    expanded_write.find,
    changed_argument.find,
    changed_output.find,
    kept_item.find,
    changed_by_other_name.find,
    lost_addition.find,
    lost_fractions.find,
    data_changed_in_place.find,
    item_changed_in_place.find,
    changed_start.find,
    filled_memory.find,
    write_to_copy.find,
    changed_copy.find,
    shuffled_views.find,
)
