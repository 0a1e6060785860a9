"""Finds the cause of `saved-tensor-hooks-disable-version-check`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import open_region
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.kept import Kept, kept_text, operation
from tensorlens.diagnostics.shared.parameter_copies import with_copied_parameters
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of, save_of, saving_call
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import StaleSavedTensor
from tensorlens.records.report import Diagnostic

CODE = "saved-tensor-hooks-disable-version-check"
MODES = ("saved_tensors_hooks", "save_on_cpu")


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[tuple[int, int]] = set()
    for stale in facts.trace.inspection.stale:
        backward, saving = backward_of(facts, stale.index), saving_call(facts, stale)
        if stale.node or stale.slot or backward is None or backward.failed or saving is None:
            continue
        if (saving.site, backward.site) not in reported:
            reported.add((saving.site, backward.site))
            yield _report(facts, stale, backward, saving)


def _report(facts: TraceIndex, stale: StaleSavedTensor, backward: Backward, saving: Call) -> Diagnostic:
    name = named(facts, stale.tensor, saving.index)
    then, now = stale.versions
    mode = open_region(facts, saving.index, *MODES)
    change, notes = _change(facts, stale, saving), proof_notes(facts, backward)
    same = [each for each in facts.trace.inspection.stale if backward_of(facts, each.index) is backward]
    changed_at = backward.site if change is None else change.site
    copied = with_copied_parameters(facts, [save_of(facts, each) for each in (stale, *same)], changed_at, backward.site)
    how = f"{as_written(facts, change)} overwrote {name}" if change is not None else f"{name} was overwritten"
    return finding(
        CODE,
        "warning",
        f"{how} after {operation(facts, saving)} kept it through a hook that makes no copy",
        "PyTorch does not check what saved-tensor hooks keep, so the gradient is computed from the new values",
        [
            None if change is None else facts.label("modified_here", change.site, "overwritten here"),
            facts.label("saved_here", saving.site, kept_text(facts, Kept(saving, stale.tensor, stale.slot))),
            None
            if mode is None
            else facts.label("mode_entered_here", mode.site, "hooks keep what is saved from here on"),
            facts.label("needed_here", backward.site, "computes with the new values"),
        ],
        notes=notes,
        fixes=(
            *([copied] if copied is not None else []),
            fix(
                f"{'or ' if copied is not None else ''}change a new tensor instead, or change this one after backward",
                place=None if change is None else facts.span(change.site),
            ),
            fix(
                "or let the hook that packs return a copy: `t.clone()`",
                place=None if mode is None else facts.span(mode.site),
            ),
        ),
        evidence={"saved_version": then, "found_version": now, "after": stale.after},
        detail=(f"packed at version {then}, unpacked at version {now}, as {stale.after}",),
    )


def _change(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> Call | Backward | None:
    """Finds the first change after the save."""
    for event, write in facts.writes(facts.tensor(stale.tensor or 0).counter):
        if saving.index <= event.index < stale.index and write.after > stale.versions[0]:
            return event
    return None
