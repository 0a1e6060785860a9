"""Names what makes a NaN or an infinity."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.not_finite import (
    first_nonfinite,
    infinite_sequences,
    nonfinite_gradients,
)

FINDERS: tuple[Finder, ...] = (
    first_nonfinite.find,
    nonfinite_gradients.find,
    infinite_sequences.find,
)
