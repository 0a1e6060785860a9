"""Names samples that reach the model with other values, labels or weights than they should."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.samples import (
    class_weights,
    equal_view,
    misplaced_weight,
    split_again,
    trained_rows,
    wrapped_byte,
)

FINDERS: tuple[Finder, ...] = (
    class_weights.find,
    wrapped_byte.find,
    misplaced_weight.find,
    equal_view.find,
    trained_rows.find,
    split_again.find,
)
