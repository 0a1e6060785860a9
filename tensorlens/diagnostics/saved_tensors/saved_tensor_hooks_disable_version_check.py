"""Finds the cause of `saved-tensor-hooks-disable-version-check`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import open_region
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of, saving_call
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import StaleSavedTensor
from tensorlens.records.report import Diagnostic, Label

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
    return finding(
        CODE,
        "warning",
        f"{name} was changed in place after {op_text(saving.op)} saved it, and its hooks gave no copy",
        f"what a saved-tensor hook has packed has no version check: it was packed at version {then} and comes back at "
        f"version {now}, {stale.after}, so the gradient is wrong",
        [
            *_change_label(facts, stale, saving),
            facts.label("saved_here", saving.site, f"{op_text(saving.op)} saves {name}{in_iteration(facts, saving)}"),
            None if mode is None else facts.label("mode_entered_here", mode.site, "hooks pack what is saved"),
            facts.label("needed_here", backward.site, "backward computes with the changed values"),
        ],
        notes=proof_notes(facts, backward),
        fixes=(
            fix("change it only after backward, or change a new tensor instead"),
            fix("or let the pack hook return a copy: `t.clone()`"),
        ),
        evidence={"saved_version": then, "found_version": now, "after": stale.after},
    )


def _change_label(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> Iterator[Label | None]:
    """Labels the first change after the save, if there is one."""
    for event, write in facts.writes(facts.tensor(stale.tensor or 0).counter):
        if saving.index <= event.index < stale.index and write.after > stale.versions[0]:
            text = f"{op_text(event.op)} changes it in place: version {write.before} -> {write.after}"
            yield facts.label("modified_here", event.site, text)
            return
