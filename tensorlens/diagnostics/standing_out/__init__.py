"""Says what stands out in the training of a run: measured facts, one sentence each, that may be intended.

A finding of the other families says that something is wrong. A sentence here says only what is so: each module has a
function `find` that yields them. What a finding of the report says already is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.diagnostics.standing_out import (
    accumulated_passes,
    average_is_stepped,
    broadcast_in_loss,
    cached_constant,
    changed_argument,
    changed_copy,
    clipped_parts,
    constant_gradient,
    constant_ratio,
    counted_mask,
    data_changed_in_place,
    dead_update,
    drawn_as_constant,
    dropout_without_mode,
    dropped_result,
    empty_loads,
    equal_members,
    expanded_write,
    filled_by_input_passes,
    first_group_only,
    first_nonfinite,
    first_order_gradient,
    flag_of_alias,
    frozen_again,
    frozen_by_default,
    frozen_untrained,
    given_memory,
    gradient_kept_by_reference,
    gradient_written,
    harmless_warning,
    held_twice,
    hook_on_shared,
    idle_hooks,
    idle_optimizers,
    idle_schedules,
    idle_statements,
    initial_statistics,
    iterator_used_up,
    kept_alias,
    kept_ascent,
    kept_memory,
    kept_module,
    late_variable,
    learning_rates,
    left_gradients,
    loaded_rates,
    loss_terms,
    lost_addition,
    modes_at_steps,
    moved_on_zeros,
    moved_while_frozen,
    moved_without_gradient,
    nearest_entry,
    never_added,
    no_optimizer,
    nonfinite_gradients,
    outdated_arrays,
    overwritten_padding,
    overwritten_values,
    parametrization_removed,
    path_ends,
    plateau_mode,
    probabilities_in_loss,
    probability_ratio,
    pruned_again,
    rate_not_read,
    repeated_hooks,
    repeated_item,
    repeated_module,
    repeated_seed,
    reversed_average,
    reversed_estimate,
    rounded_away,
    run_along_batch,
    same_module,
    schedule_length,
    self_update,
    shared_state,
    small_terms,
    state_detached,
    steps_without_gradient,
    still_multiplied,
    swapped_average,
    term_counted_twice,
    trained_advantage,
    training_mode_kept,
    two_attributes,
    unloaded_state,
    unread_copy,
    unread_options,
    untied,
    unused_changes,
    unused_loss,
    unused_part,
    write_to_copy,
    zero_gradient,
)
from tensorlens.records.report import Diagnostic, StandingOut

Finder = Callable[[MeasuredTraining], Iterator[StandingOut]]
FINDERS: tuple[Finder, ...] = (
    first_nonfinite.find,
    idle_optimizers.find,
    no_optimizer.find,
    empty_loads.find,
    path_ends.find,
    steps_without_gradient.find,
    cached_constant.find,
    parametrization_removed.find,
    zero_gradient.find,
    constant_gradient.find,
    constant_ratio.find,
    nonfinite_gradients.find,
    loss_terms.find,
    unused_loss.find,
    unused_part.find,
    probabilities_in_loss.find,
    counted_mask.find,
    drawn_as_constant.find,
    nearest_entry.find,
    reversed_estimate.find,
    state_detached.find,
    trained_advantage.find,
    probability_ratio.find,
    broadcast_in_loss.find,
    run_along_batch.find,
    first_order_gradient.find,
    accumulated_passes.find,
    term_counted_twice.find,
    left_gradients.find,
    filled_by_input_passes.find,
    small_terms.find,
    untied.find,
    same_module.find,
    kept_alias.find,
    kept_module.find,
    given_memory.find,
    self_update.find,
    repeated_item.find,
    outdated_arrays.find,
    gradient_kept_by_reference.find,
    gradient_written.find,
    shared_state.find,
    two_attributes.find,
    expanded_write.find,
    changed_argument.find,
    lost_addition.find,
    data_changed_in_place.find,
    repeated_module.find,
    held_twice.find,
    average_is_stepped.find,
    swapped_average.find,
    reversed_average.find,
    unread_copy.find,
    overwritten_values.find,
    kept_ascent.find,
    pruned_again.find,
    modes_at_steps.find,
    initial_statistics.find,
    training_mode_kept.find,
    dropout_without_mode.find,
    repeated_seed.find,
    equal_members.find,
    learning_rates.find,
    first_group_only.find,
    loaded_rates.find,
    unloaded_state.find,
    rounded_away.find,
    overwritten_padding.find,
    idle_schedules.find,
    schedule_length.find,
    plateau_mode.find,
    unread_options.find,
    rate_not_read.find,
    idle_statements.find,
    dropped_result.find,
    dead_update.find,
    never_added.find,
    iterator_used_up.find,
    repeated_hooks.find,
    idle_hooks.find,
    late_variable.find,
    hook_on_shared.find,
    unused_changes.find,
    write_to_copy.find,
    changed_copy.find,
    still_multiplied.find,
    clipped_parts.find,
    moved_while_frozen.find,
    flag_of_alias.find,
    frozen_untrained.find,
    frozen_again.find,
    frozen_by_default.find,
    moved_on_zeros.find,
    moved_without_gradient.find,
    kept_memory.find,
    harmless_warning.find,
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
}  # fmt: skip
"""The findings that say the same as a finder's sentence if they label its main line."""


def standing_out(facts: TraceIndex, findings: Collection[Diagnostic] = ()) -> tuple[StandingOut, ...] | None:
    """Returns what stands out and no finding says; None if the training was not measured."""
    training = measured_training(facts)
    if training is None:
        return None
    found = ((find, each) for find in FINDERS for each in _found(find, training))
    return tuple(each for find, each in found if not _is_said(each, SAID_BY.get(find, frozenset()), findings))


def _is_said(each: StandingOut, codes: frozenset[str], findings: Collection[Diagnostic]) -> bool:
    """Returns whether a finding with one of the codes labels the main line of a sentence."""
    lines = {(label.span.file, label.span.line) for one in findings if one.code in codes for label in one.labels}
    return any((label.span.file, label.span.line) in lines for label in each.labels[:1])


def _found(find: Finder, training: MeasuredTraining) -> list[StandingOut]:
    """Runs a finder. If it raises on a trace that it does not expect, it finds nothing."""
    try:
        return list(find(training))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []
