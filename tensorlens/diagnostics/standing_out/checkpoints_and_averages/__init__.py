"""Names snapshots that are no copies, states that are not saved or loaded, and averages that do not follow."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.checkpoints_and_averages import (
    average_is_stepped,
    changed_state_dict,
    empty_loads,
    kept_alias,
    kept_module,
    left_buffer,
    left_master,
    left_parameter,
    mean_of_one,
    reordered_load,
    replaced_optimizer,
    reversed_average,
    rounded_average,
    scaled_average,
    swapped_average,
    unloaded_average,
    unloaded_state,
    unread_copy,
    unread_load,
    unsaved_attribute,
    unsaved_number,
)

FINDERS: tuple[Finder, ...] = (
    empty_loads.find,
    kept_alias.find,
    kept_module.find,
    changed_state_dict.find,
    average_is_stepped.find,
    swapped_average.find,
    reversed_average.find,
    rounded_average.find,
    mean_of_one.find,
    scaled_average.find,
    left_buffer.find,
    left_master.find,
    left_parameter.find,
    unread_copy.find,
    unloaded_state.find,
    replaced_optimizer.find,
    reordered_load.find,
    unloaded_average.find,
    unsaved_attribute.find,
    unsaved_number.find,
    unread_load.find,
)
