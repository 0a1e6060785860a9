"""Finds the cause of `ddp-hook-lost`."""

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
from tensorlens.diagnostics.shared.wording import as_written, finding, fix
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients that the wrapper's hook no longer sees."""
    for facts, found in ranks.unaveraged("hook lost"):
        yield RankedDiagnostic(_report(facts, found), both_ranks(found.difference))


def _report(facts: TraceIndex, found: Unaveraged) -> Diagnostic:
    replaced = _replaced(facts, found)
    by = "" if replaced is None else f": {as_written(facts, replaced)} took its hook away"
    them = "them" if len(found.names) > 1 else "it"
    label = facts.label(
        "replaced_here", None if replaced is None else replaced.site, f"gives {them} other memory, without the hook"
    )
    return finding(
        "ddp-hook-lost",
        "warning",
        f"{gradient_title(found)}{by}",
        "`DistributedDataParallel` put a hook on the node that accumulates each gradient; a parameter that gets "
        "another dtype or device gets a new node",
        [label, step_label(facts, found), wrapped_label(facts, found.replica)],
        fixes=(
            fix("move or convert the module before it is wrapped", place=None if label is None else label.span),
            fix("or wrap it again afterwards"),
        ),
        evidence={"parameters": list(found.names), "step": found.difference.step},
    )


def _replaced(facts: TraceIndex, found: Unaveraged) -> Call | None:
    """Returns the last assignment of `.data` to a parameter that lost its hook, after it was wrapped."""
    state, tensors = found.difference.state(found.replica), found.replica.wrapped.tensors
    lost = {tensors[position] for position in found.positions}
    calls = facts.trace.events[facts.trace.position(found.replica.wrapped.index) : facts.trace.position(state.index)]
    assigned = [
        each
        for each in calls
        if isinstance(each, Call) and each.op == "Tensor.data.__set__" and each.inputs and each.inputs[0].tensor in lost
    ]
    return assigned[-1] if assigned else None
