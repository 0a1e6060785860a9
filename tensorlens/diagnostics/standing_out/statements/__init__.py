"""Names statements that do nothing, or that only set a variable, and hooks that never run."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.statements import (
    dead_update,
    dropped_result,
    idle_hooks,
    idle_statements,
    iterator_used_up,
    last_round_only,
    late_variable,
    never_added,
    patience_total,
    rebound_state,
    repeated_hooks,
    unwritten_buffer,
)

FINDERS: tuple[Finder, ...] = (
    idle_statements.find,
    dropped_result.find,
    dead_update.find,
    unwritten_buffer.find,
    rebound_state.find,
    never_added.find,
    iterator_used_up.find,
    repeated_hooks.find,
    idle_hooks.find,
    late_variable.find,
    last_round_only.find,
    patience_total.find,
)
