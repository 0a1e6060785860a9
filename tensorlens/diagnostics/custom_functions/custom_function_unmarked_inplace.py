"""Finds the cause of `custom-function-unmarked-inplace`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import backward_reaches
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import BEYOND_COPIES
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward, Call, Write
from tensorlens.records.report import Diagnostic

CODE = "custom-function-unmarked-inplace"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[int] = set()
    for call in facts.calls:
        if not call.op.endswith(".apply") or call.site in reported:
            continue
        for write in call.writes:
            backward = _misled_backward(facts, call, write)
            if backward is not None and call.site not in reported:
                reported.add(call.site)
                yield _report(facts, call, write, backward)


def _misled_backward(facts: TraceIndex, call: Call, write: Write) -> Backward | None:
    """Finds the backward pass through an input that `forward` changed and whose history stayed the same.

    The pass starts at the input, or goes through a later use of it.
    """
    before, after = facts.state(write.tensor, call.index - 1), facts.state(write.tensor, call.index)
    if before is None or after is None or before.is_leaf or not before.requires_grad or before.node != after.node:
        return None
    for backward in facts.backwards:
        if backward.index < call.index or backward.failed:
            continue
        if any(root.tensor == write.tensor for root in backward.roots):
            return backward
        for use in facts.calls:
            if call.index < use.index < backward.index and any(a.tensor == write.tensor for a in use.inputs):
                if backward_reaches(facts, backward, use):
                    return backward
    return None


def _report(facts: TraceIndex, call: Call, write: Write, backward: Backward) -> Diagnostic:
    name = named(facts, write.tensor, call.index)
    function = call.op.removesuffix(".apply")
    state = facts.state(write.tensor, call.index)
    node = "" if state is None or state.grad_fn is None else f"; its history is still that of `{state.grad_fn}`"
    inner = _inner(facts, call, write)
    place = facts.span((inner or call).site)
    return finding(
        CODE,
        "warning",
        f"`{function}.forward` changed its input {name} in place and did not declare it",
        f"autograd does not know of the change: what is computed from {name} afterwards gets the gradient of the old "
        "values",
        [
            facts.label("modified_here", (inner or call).site, "changes the input"),
            facts.label("called_here", call.site, f"`{function}` is called with {name}"),
            facts.label("needed_here", backward.site, "its gradient leaves the change out"),
        ],
        notes=(BEYOND_COPIES,),
        fixes=(
            fix("call `ctx.mark_dirty()` on the input in `forward`, and return it", place=place),
            fix(f"or change a copy in `forward`, made with `clone()`: {name} then stays as it was", place=place),
        ),
        detail=(f"the write made version {write.before} of {name} version {write.after}{node}",),
        evidence={"function": function, "before": write.before, "after": write.after},
    )


def _inner(facts: TraceIndex, call: Call, write: Write) -> Call | None:
    """Finds the call inside `forward` that made the change."""
    counter = facts.tensor(write.tensor).counter
    found = [
        inner
        for inner in facts.calls
        if inner.index < call.index and call.nodes[0] <= inner.nodes[0] and inner.mode != "grad"
        and any(facts.tensor(w.tensor).counter == counter and w.before >= write.before for w in inner.writes)
    ]  # fmt: skip
    return found[0] if found else None
