"""Names densities, noise and variances of generative models that do not belong together."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.densities_and_noise import (
    falling_weight,
    latent_term,
    log_determinant,
    mixed_without_root,
    scaled_codes,
    unchanged_half,
    unrelated_noise,
)

FINDERS: tuple[Finder, ...] = (
    falling_weight.find,
    log_determinant.find,
    latent_term.find,
    scaled_codes.find,
    unrelated_noise.find,
    mixed_without_root.find,
    unchanged_half.find,
)
