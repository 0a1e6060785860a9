"""Names parameters that begin with the wrong values, are shared, frozen or pruned, or move or stay by mistake."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.parameters import (
    copied_parameter,
    equal_members,
    flag_of_alias,
    folded_again,
    frozen_again,
    frozen_by_default,
    frozen_untrained,
    given_memory,
    kept_ascent,
    lost_start,
    moved_on_zeros,
    moved_while_frozen,
    moved_without_gradient,
    overwritten_padding,
    overwritten_values,
    partly_reset,
    pruned_again,
    repeated_module,
    rounded_away,
    same_module,
    untied,
    untrained_original,
)

FINDERS: tuple[Finder, ...] = (
    untied.find,
    copied_parameter.find,
    same_module.find,
    given_memory.find,
    repeated_module.find,
    equal_members.find,
    untrained_original.find,
    overwritten_values.find,
    lost_start.find,
    overwritten_padding.find,
    partly_reset.find,
    pruned_again.find,
    kept_ascent.find,
    flag_of_alias.find,
    frozen_untrained.find,
    frozen_again.find,
    folded_again.find,
    frozen_by_default.find,
    rounded_away.find,
    moved_while_frozen.find,
    moved_on_zeros.find,
    moved_without_gradient.find,
)
