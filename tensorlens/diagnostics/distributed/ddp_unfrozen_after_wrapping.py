"""Finds the cause of `ddp-unfrozen-after-wrapping`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.averaging import Unaveraged
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.ranked_facts import (
    RankedDiagnostic,
    RankedFacts,
    both_ranks,
    gradient_title,
    step_label,
    wrapped_label,
)
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic

_SETTERS = ("Tensor.requires_grad_", "Tensor.requires_grad.__set__")


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients of parameters that did not require grad when they were wrapped."""
    for facts, found in ranks.unaveraged("frozen when wrapped"):
        yield RankedDiagnostic(_report(facts, found), both_ranks(found.difference))


def _report(facts: TraceIndex, found: Unaveraged) -> Diagnostic:
    it = "they" if len(found.names) > 1 else "it"
    changed = _unfrozen(facts, found)
    label = facts.label(
        "flag_changed_here",
        None if changed is None else changed.site,
        f"{it} require grad from here on" if it == "they" else "it requires grad from here on",
    )
    return finding(
        "ddp-unfrozen-after-wrapping",
        "warning",
        f"{gradient_title(found)}: {it} did not require grad when wrapped",
        "`DistributedDataParallel` averages the gradients of the parameters that require grad when it is made",
        [label, step_label(facts, found), wrapped_label(facts, found.replica)],
        fixes=(
            fix("let all parameters that are to be trained require grad before the module is wrapped"),
            fix("or wrap the module again after this line", place=None if label is None else label.span),
        ),
        evidence={"parameters": list(found.names), "step": found.difference.step},
    )


def _unfrozen(facts: TraceIndex, found: Unaveraged) -> Call | None:
    """Returns the last call before the step that let one of the parameters require grad."""
    state, tensors = found.difference.state(found.replica), found.replica.wrapped.tensors
    frozen = {tensors[position] for position in found.positions}
    calls = facts.trace.events[facts.trace.position(found.replica.wrapped.index) : facts.trace.position(state.index)]
    setting = [
        each
        for each in calls
        if isinstance(each, Call) and each.op in _SETTERS and each.inputs and each.inputs[0].tensor in frozen
    ]
    return setting[-1] if setting else None
