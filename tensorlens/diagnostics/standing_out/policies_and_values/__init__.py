"""Names policies, values, returns and episodes that a loss takes otherwise than the method says."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.policies_and_values import (
    chosen_value,
    episode_end,
    moved_sample,
    normalised_target,
    priority_by_position,
    probability_ratio,
    returns_in_order,
    squashed_density,
    state_of_episode,
    step_return,
    trained_advantage,
    trained_target,
    unclipped_objective,
)

FINDERS: tuple[Finder, ...] = (
    trained_advantage.find,
    trained_target.find,
    probability_ratio.find,
    unclipped_objective.find,
    squashed_density.find,
    episode_end.find,
    chosen_value.find,
    normalised_target.find,
    returns_in_order.find,
    moved_sample.find,
    state_of_episode.find,
    step_return.find,
    priority_by_position.find,
)
