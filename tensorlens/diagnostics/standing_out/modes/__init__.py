"""Names layers that run in the wrong mode, running statistics and random seeds."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.modes import (
    averaged_statistics,
    batch_momentum,
    dropout_without_mode,
    initial_statistics,
    modes_at_steps,
    repeated_seed,
    stale_cast,
    stale_result,
    training_mode_kept,
)

FINDERS: tuple[Finder, ...] = (
    modes_at_steps.find,
    initial_statistics.find,
    batch_momentum.find,
    averaged_statistics.find,
    training_mode_kept.find,
    dropout_without_mode.find,
    repeated_seed.find,
    stale_result.find,
    stale_cast.find,
)
