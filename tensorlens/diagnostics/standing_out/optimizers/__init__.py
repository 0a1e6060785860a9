"""Names optimizers that never step or share parameters and state, and parameters that no optimizer holds."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.optimizers import (
    correction_count,
    held_twice,
    idle_optimizers,
    no_optimizer,
    parametrization_removed,
    shared_by_shape,
    shared_state,
    unwritten_state,
)

FINDERS: tuple[Finder, ...] = (
    idle_optimizers.find,
    no_optimizer.find,
    parametrization_removed.find,
    held_twice.find,
    shared_state.find,
    unwritten_state.find,
    correction_count.find,
    shared_by_shape.find,
)
