"""Names parameters that no gradient reaches, and lines where the path from them to the loss ends."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.cut_graphs import (
    cached_constant,
    compared_constant,
    drawn_as_constant,
    first_order_gradient,
    hook_cuts,
    made_again,
    nearest_entry,
    path_ends,
    reversed_estimate,
    stale_factor,
    state_detached,
    steps_without_gradient,
)

FINDERS: tuple[Finder, ...] = (
    path_ends.find,
    steps_without_gradient.find,
    cached_constant.find,
    stale_factor.find,
    compared_constant.find,
    drawn_as_constant.find,
    nearest_entry.find,
    reversed_estimate.find,
    state_detached.find,
    first_order_gradient.find,
    made_again.find,
    hook_cuts.find,
)
