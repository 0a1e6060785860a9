"""Names gradients that are zero, constant or lack a factor, passes that add up, and changes of gradients in vain."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.gradients import (
    accumulated_passes,
    carried_passes,
    clipped_parts,
    clipped_scaled,
    columns_at_once,
    constant_gradient,
    constant_ratio,
    filled_by_input_passes,
    gradient_kept_by_reference,
    gradient_written,
    hook_on_shared,
    left_gradients,
    mixed_by_element,
    norm_of_parts,
    replaced_gradient,
    single_cumulation,
    squared_sums,
    still_multiplied,
    summed_derivative,
    term_counted_twice,
    unused_changes,
    zero_gradient,
)

FINDERS: tuple[Finder, ...] = (
    zero_gradient.find,
    constant_gradient.find,
    constant_ratio.find,
    single_cumulation.find,
    summed_derivative.find,
    columns_at_once.find,
    norm_of_parts.find,
    mixed_by_element.find,
    accumulated_passes.find,
    carried_passes.find,
    term_counted_twice.find,
    left_gradients.find,
    squared_sums.find,
    filled_by_input_passes.find,
    gradient_kept_by_reference.find,
    replaced_gradient.find,
    gradient_written.find,
    hook_on_shared.find,
    unused_changes.find,
    still_multiplied.find,
    clipped_scaled.find,
    clipped_parts.find,
)
