"""Names masks that set elements of parameters to zero, and that nothing applies again after the steps that follow."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.hook_functions import hooks_without_lines
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.pruned_weights import pruned_weights
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in pruned_weights(training):
        group, masked = each.rows[0].group, each.gradient
        assert group is not None
        if facts.trace.callbacks.registrations and masked is None:
            continue  # a hook may apply a mask that it has made itself
        masks, place = (None, None) if masked is None else _what_masks(facts, masked)
        them = "it" if len(each.rows) == 1 else "them"
        done = f"multiplies {listed(each.rows)}" if each.is_product else f"sets elements of {listed(each.rows)} to zero"
        text = f"{as_written(facts, each.write)} {done} by a mask before {each.steps:,} steps of "
        if masked is None:
            text += f"`{group.name}`, which change all elements that have a gradient; nothing reads the mask after it"
        else:
            text += f"`{group.name}`, which go on along averages of the gradients from before: "
            text += f"{masks} masks new gradients, and nothing masks {them} after a step"
        yield stands_out(
            text,
            facts.label("modified_here", each.write.site, "masked here", each.write.index),
            facts.label("optimizer_made_here", group.site, "its steps follow"),
            None if place is None else facts.label("modified_here", place, "gradients are masked here"),
        )


def _what_masks(facts: TraceIndex, masked: Call) -> tuple[str, int]:
    """Names the call that masks gradients, or the hook that does, and returns its place."""
    hooks = hooks_without_lines(facts, "tensor hook")
    hook = next((hooks[access.tensor] for access in masked.outputs if access.tensor in hooks), None)
    return (as_written(facts, masked), masked.site) if hook is None else ("a hook", hook.site)
