"""Joins the finders of all subjects, in the order of their sentences, and lists the findings that say the same."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out import (
    changed_in_place,
    checkpoints_and_averages,
    cut_graphs,
    densities_and_noise,
    gradients,
    harmless_warning,
    kept_memory,
    losses,
    modes,
    not_finite,
    optimizers,
    pairs,
    parameters,
    policies_and_values,
    rates_and_schedules,
    rows_and_dimensions,
    samples,
    sequences_and_masks,
    statements,
)
from tensorlens.diagnostics.standing_out.changed_in_place import write_to_copy
from tensorlens.diagnostics.standing_out.cut_graphs import path_ends
from tensorlens.diagnostics.standing_out.gradients import left_gradients
from tensorlens.diagnostics.standing_out.optimizers import idle_optimizers, no_optimizer
from tensorlens.diagnostics.standing_out.parameters import moved_while_frozen
from tensorlens.diagnostics.standing_out.statements import iterator_used_up, rebound_state

FINDERS: tuple[Finder, ...] = (
    *not_finite.FINDERS,
    *optimizers.FINDERS,
    *cut_graphs.FINDERS,
    *gradients.FINDERS,
    *losses.FINDERS,
    *policies_and_values.FINDERS,
    *densities_and_noise.FINDERS,
    *pairs.FINDERS,
    *sequences_and_masks.FINDERS,
    *rows_and_dimensions.FINDERS,
    *samples.FINDERS,
    *parameters.FINDERS,
    *checkpoints_and_averages.FINDERS,
    *changed_in_place.FINDERS,
    *modes.FINDERS,
    *rates_and_schedules.FINDERS,
    *statements.FINDERS,
    harmless_warning.find,
    kept_memory.find,
)
"""In the order in which their sentences are shown."""
SAID_BY: dict[Finder, frozenset[str]] = {
    idle_optimizers.find: frozenset(("optimizer-step-not-called", "frozen-parameter-still-updated")),
    no_optimizer.find: frozenset(("optimizer-holds-replaced-parameter", "parameter-not-registered")),
    path_ends.find: frozenset(("branch-detached", "leaf-rebound-to-nonleaf", "optimizer-holds-replaced-parameter",
                               "target-not-detached", "loss-term-is-constant", "parameter-not-registered")),
    iterator_used_up.find: frozenset(("parameters-iterator-used-up", "clip-grad-empty-generator")),
    left_gradients.find: frozenset(("gradient-accumulates-without-zero-grad",)),
    write_to_copy.find: frozenset(("indexing-makes-a-copy",)),
    moved_while_frozen.find: frozenset(("frozen-parameter-still-updated",)),
    rebound_state.find: frozenset(("update-rebinds-loop-variable",)),
}  # fmt: skip
"""The findings that say the same as a finder's sentence if they label its main line."""
