"""Names losses and their terms that compute other numbers than their form suggests."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.losses import (
    broadcast_in_loss,
    cancelled_term,
    deviation_as_variance,
    falling_weight,
    latent_term,
    least_of_means,
    log_determinant,
    loss_terms,
    lost_mask,
    mixed_without_root,
    probabilities_in_loss,
    probability_ratio,
    scaled_codes,
    small_terms,
    trained_advantage,
    trained_target,
    turned_sign,
    unrelated_noise,
    unused_loss,
)

FINDERS: tuple[Finder, ...] = (
    loss_terms.find,
    unused_loss.find,
    small_terms.find,
    probabilities_in_loss.find,
    lost_mask.find,
    least_of_means.find,
    deviation_as_variance.find,
    trained_advantage.find,
    trained_target.find,
    probability_ratio.find,
    broadcast_in_loss.find,
    cancelled_term.find,
    falling_weight.find,
    turned_sign.find,
    log_determinant.find,
    latent_term.find,
    scaled_codes.find,
    unrelated_noise.find,
    mixed_without_root.find,
)
