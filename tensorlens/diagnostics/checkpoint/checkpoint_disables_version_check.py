"""Finds the cause of `checkpoint-disables-version-check`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import recomputing_checkpoint
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of, saving_call
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, op_text, with_method
from tensorlens.records.model import Backward, Call, Write
from tensorlens.records.observations import RECOMPUTED, StaleSavedTensor
from tensorlens.records.report import Diagnostic, Fix

CODE = "checkpoint-disables-version-check"

_Change = tuple[Call | Backward, Write]  # what wrote the tensor, and the write


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[tuple[int | None, int]] = set()
    for stale in facts.trace.inspection.stale:
        if stale.slot != RECOMPUTED:
            continue
        backward, saving = backward_of(facts, stale.index), saving_call(facts, stale)
        if backward is None or backward.failed or saving is None:
            continue
        change = _change(facts, stale, saving)
        place = (None if change is None else change[0].site, backward.site)
        if place not in reported:
            reported.add(place)
            yield _report(facts, stale, backward, saving, change)


def _report(
    facts: TraceIndex,
    stale: StaleSavedTensor,
    backward: Backward,
    saving: Call,
    change: _Change | None,
) -> Diagnostic:
    name = _name(facts, stale, saving, change)
    then, now = stale.versions
    checkpoint = recomputing_checkpoint(facts, saving.index)
    values = f"{stale.before} became {stale.after}" if stale.before else f"it holds {stale.after} now"
    changed = None
    if change is not None:
        event, write = change
        text = f"{op_text(event.op)} changes it in place: version {write.before} -> {write.after}"
        changed = facts.label("modified_here", event.site, text)
    return finding(
        CODE,
        "warning",
        f"{name} was changed in place after {op_text(saving.op)} saved it in the second run of a checkpoint",
        f"what a checkpoint saves has no version check: saved at version {then}, used at version {now}, {values}, so "
        f"the gradient of {op_text(saving.op)} is computed from changed values",
        [
            changed,
            facts.label("saved_here", saving.site, f"{op_text(saving.op)} saves {name}{in_iteration(facts, saving)}"),
            None if checkpoint is None else facts.label("called_here", checkpoint.site, "the checkpoint"),
            facts.label("needed_here", backward.site, "backward runs it again and computes with the changed values"),
        ],
        notes=(*(() if changed else ("which line changed it was not seen",)), *proof_notes(facts, backward)),
        fixes=(_cure(change, name),),
        evidence={"saved_version": then, "found_version": now, "before": stale.before, "after": stale.after},
    )


def _name(facts: TraceIndex, stale: StaleSavedTensor, saving: Call, change: _Change | None) -> str:
    """Names the tensor as the line that saves it does.

    If that line calls backward, so that no line of the function is known, the name is that on the line of the change.
    """
    site = saving.site
    in_pass = any(one.site == site for one in facts.backwards)
    if in_pass and change is not None:
        return named(facts, change[1].tensor, change[0].index)
    return named(facts, stale.tensor, saving.index)


def _cure(change: _Change | None, name: str) -> Fix:
    op = "" if change is None else change[0].op
    if op.endswith("_") and not op.endswith("__"):
        return fix(f"use {op_text(op[:-1])} instead of {op_text(op)}, and compute with the new tensor that it makes")
    return fix(f"change a copy, and compute with that: {with_method(name, 'clone()')}")


def _change(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> tuple[Call | Backward, Write] | None:
    """Finds the first change after the tensor was saved."""
    for event, write in facts.writes(facts.tensor(stale.tensor or 0).counter):
        if saving.index <= event.index < stale.index and write.after > stale.versions[0]:
            return event, write
    return None
