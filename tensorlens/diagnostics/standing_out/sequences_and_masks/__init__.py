"""Names sequences whose steps, padding, positions or masks are taken for others."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.sequences_and_masks import (
    added_mask,
    ahead_convolution,
    averaged_padding_places,
    batch_position,
    copied_mask,
    counted_mask,
    fed_target,
    hidden_token,
    ignored_end,
    interleaved_stream,
    last_of_both,
    last_of_padded,
    late_query,
    late_score_mask,
    length_as_place,
    own_target,
    padded_id,
    padding_position,
    run_along_batch,
    shifted_targets,
    state_of_others,
    turned_mask,
)

FINDERS: tuple[Finder, ...] = (
    copied_mask.find,
    counted_mask.find,
    added_mask.find,
    ahead_convolution.find,
    averaged_padding_places.find,
    batch_position.find,
    turned_mask.find,
    run_along_batch.find,
    last_of_both.find,
    last_of_padded.find,
    late_query.find,
    late_score_mask.find,
    shifted_targets.find,
    state_of_others.find,
    hidden_token.find,
    padding_position.find,
    interleaved_stream.find,
    own_target.find,
    fed_target.find,
    padded_id.find,
    ignored_end.find,
    length_as_place.find,
)
