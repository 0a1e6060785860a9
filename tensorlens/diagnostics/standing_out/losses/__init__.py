"""Names losses and their terms that compute other numbers than their form suggests."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.losses import (
    broadcast_in_loss,
    cancelled_term,
    counted_weight,
    deviation_as_variance,
    equal_direction,
    falling_weight,
    focal_of_mean,
    least_of_means,
    loss_terms,
    lost_mask,
    own_similarity,
    probabilities_in_loss,
    probability_ratio,
    queued_positive,
    small_terms,
    trained_advantage,
    trained_target,
    turned_sign,
    unstopped_target,
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
    own_similarity.find,
    queued_positive.find,
    equal_direction.find,
    focal_of_mean.find,
    counted_weight.find,
    unstopped_target.find,
)
