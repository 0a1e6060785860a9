"""Finds the cause of `checkpoint-disables-version-check`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import recomputing_checkpoint
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.kept import Kept, kept_text, operation
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of, saving_call
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named, op_text, with_method
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
    changed = None if change is None else facts.label("modified_here", change[0].site, "overwritten here")
    how = f"{name} was overwritten" if change is None else f"{as_written(facts, change[0])} overwrote {name}"
    notes = proof_notes(facts, backward)
    return finding(
        CODE,
        "warning",
        f"{how} after {operation(facts, saving)} kept it for backward, in the second run of a checkpoint",
        "PyTorch does not check what a checkpoint keeps, so the gradient is computed from the new values",
        [
            changed,
            facts.label("saved_here", saving.site, kept_text(facts, Kept(saving, stale.tensor, ""))),
            None
            if checkpoint is None
            else facts.label("called_here", checkpoint.site, "the checkpoint is called here"),
            facts.label("needed_here", backward.site, "runs it again, and computes with the new values"),
        ],
        notes=(*(() if changed else ("which line changed it was not seen",)), *notes),
        fixes=(_cure(facts, change, name),),
        evidence={"saved_version": then, "found_version": now, "before": stale.before, "after": stale.after},
        detail=(f"saved at version {then}, used at version {now}: {values}",),
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


def _cure(facts: TraceIndex, change: _Change | None, name: str) -> Fix:
    event = None if change is None else change[0]
    place = None if event is None else facts.span(event.site)
    if event is not None and event.op.endswith("_") and not event.op.endswith("__"):
        text = f"use {op_text(event.op[:-1])} instead of {op_text(event.op)}, and compute with its new tensor"
        return fix(text, place=place)
    return fix(f"change a copy, and compute with that: {with_method(name, 'clone()')}", place=place)


def _change(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> tuple[Call | Backward, Write] | None:
    """Finds the first change after the tensor was saved."""
    for event, write in facts.writes(facts.tensor(stale.tensor or 0).counter):
        if saving.index <= event.index < stale.index and write.after > stale.versions[0]:
            return event, write
    return None
