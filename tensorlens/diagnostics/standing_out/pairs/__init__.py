"""Names pairs of rows that a contrastive loss or a hinge compares in the wrong way."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.pairs import (
    equal_direction,
    neighbour_target,
    own_nearest,
    own_similarity,
    queued_positive,
    shifted_partner,
    turned_hinge,
)

FINDERS: tuple[Finder, ...] = (
    turned_hinge.find,
    own_similarity.find,
    queued_positive.find,
    equal_direction.find,
    own_nearest.find,
    shifted_partner.find,
    neighbour_target.find,
)
