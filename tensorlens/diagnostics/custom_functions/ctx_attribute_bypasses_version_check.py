"""Finds the cause of `ctx-attribute-bypasses-version-check`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of, saving_call, tensor_name
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import StaleSavedTensor
from tensorlens.records.report import Diagnostic, Label

CODE = "ctx-attribute-bypasses-version-check"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[tuple[int, int]] = set()
    for stale in facts.trace.inspection.stale:
        backward, saving = backward_of(facts, stale.index), saving_call(facts, stale)
        if stale.overwrite is not None or not stale.node or backward is None or saving is None:
            continue
        if _reads(facts, backward, stale) and (saving.site, backward.site) not in reported:
            reported.add((saving.site, backward.site))
            yield _report(facts, stale, backward, saving)


def _reads(facts: TraceIndex, backward: Backward, stale: StaleSavedTensor) -> bool:
    """Returns whether a call during the pass read the attribute. An unread one, such as a counter or a cache, is
    harmless."""
    during = (call for call in facts.calls if backward.started <= call.index <= backward.index)
    return any(access.tensor == stale.tensor for call in during for access in call.inputs)


def _report(facts: TraceIndex, stale: StaleSavedTensor, backward: Backward, saving: Call) -> Diagnostic:
    name = tensor_name(facts, stale, saving)
    then, now = stale.versions
    return finding(
        CODE,
        "warning",
        f"{name} was changed after `{saving.op.removesuffix('.apply')}` kept it as `{stale.slot}`",
        f"an attribute of `ctx` has no version check: it was kept at version {then} and backward used version {now}, "
        f"{stale.after}",
        [*_changes(facts, stale, saving), _kept(facts, stale, saving), _needed(facts, backward)],
        notes=proof_notes(facts, backward),
        fixes=(
            fix(f"keep it with `ctx.save_for_backward()`: autograd then raises when {name} changes before backward"),
        ),
        evidence={"slot": stale.slot, "saved_version": then, "found_version": now, "after": stale.after},
    )


def _changes(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> Iterator[Label | None]:
    counter = facts.tensor(stale.tensor or 0).counter
    for event, write in facts.writes(counter):
        if saving.index < event.index < stale.index and write.before >= stale.versions[0]:
            text = f"{op_text(event.op)} changes it in place: version {write.before} -> {write.after}"
            yield facts.label("modified_here", event.site, text)
            return


def _kept(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> Label | None:
    """Labels the line of `forward` that set the attribute, else the call of `apply`."""
    return facts.label(
        "saved_here", stale.site if stale.site is not None else saving.site, f"kept as `{stale.slot}` here"
    )


def _needed(facts: TraceIndex, backward: Backward) -> Label | None:
    return facts.label("needed_here", backward.site, "backward computes with the changed values")
