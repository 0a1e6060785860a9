"""Finds the cause of `ctx-attribute-bypasses-version-check`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.shared_frame import is_argument
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.diagnostics.shared.edits.writes import as_new_tensor, target_of
from tensorlens.diagnostics.shared.kept import short_iteration
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of, saving_call, tensor_name
from tensorlens.diagnostics.shared.wording import as_written, finding, fix
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import StaleSavedTensor
from tensorlens.records.report import Diagnostic, Fix, Label

CODE = "ctx-attribute-bypasses-version-check"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[tuple[int, int]] = set()
    for stale in facts.trace.inspection.stale:
        backward, saving = backward_of(facts, stale.index), saving_call(facts, stale)
        if stale.overwrite is not None or not stale.node or backward is None or saving is None:
            continue
        if (saving.site, backward.site) not in reported and _reads(facts, backward, stale):
            reported.add((saving.site, backward.site))
            yield _report(facts, stale, backward, saving)


def _reads(facts: TraceIndex, backward: Backward, stale: StaleSavedTensor) -> bool:
    """Returns whether a call during the pass read the attribute. An unread one, such as a counter or a cache, is
    harmless."""
    during = facts.calls_between(backward.started, backward.index)
    return any(access.tensor == stale.tensor for call in during for access in call.inputs)


def _report(facts: TraceIndex, stale: StaleSavedTensor, backward: Backward, saving: Call) -> Diagnostic:
    name = tensor_name(facts, stale, saving)
    then, now = stale.versions
    function, change = saving.op.removesuffix(".apply"), _change(facts, stale, saving)
    how = f"{as_written(facts, change)} changed {name}" if change is not None else f"{name} was changed"
    notes = proof_notes(facts, backward)
    kept_at = facts.span(stale.site if stale.site is not None else saving.site)
    return finding(
        CODE,
        "warning",
        f"{how} after `{function}` kept it as `{stale.slot}`",
        f"PyTorch checks only what `ctx.save_for_backward()` keeps, so `{function}.backward` "
        f"computes with the new values",
        [
            None if change is None else facts.label("modified_here", change.site, _changed_text(facts, change)),
            _kept(facts, stale, saving),
            _needed(facts, backward),
        ],
        notes=notes,
        fixes=(
            *_new_tensor(facts, change),
            *_kept_copy(facts, stale),
            fix("or keep it with `ctx.save_for_backward()`: PyTorch then raises an error instead", place=kept_at),
        ),
        evidence={"slot": stale.slot, "saved_version": then, "found_version": now, "after": stale.after},
        detail=(f"`{stale.slot}` was set at version {then} of {name}, and backward read version {now}",),
    )


def _change(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> Call | Backward | None:
    """Finds the first change after the attribute was set."""
    for event, write in facts.writes(facts.tensor(stale.tensor or 0).counter):
        if saving.index < event.index < stale.index and write.before >= stale.versions[0]:
            return event
    return None


def _changed_text(facts: TraceIndex, change: Call | Backward) -> str:
    return f"changed here{short_iteration(facts, change) if isinstance(change, Call) else ''}"


def _new_tensor(facts: TraceIndex, change: Call | Backward | None) -> Iterator[Fix]:
    """Suggests the form of the change that makes a new tensor."""
    if change is None:
        return
    span = facts.span(change.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    target = target_of(statement)
    if span is None or statement is None or not isinstance(target, ast.Name):
        return
    is_shared = is_argument(facts, change.site, target.id) or target.id in facts.names.syntax.loop_names()
    edit = None if is_shared else as_new_tensor(facts, span.file, statement)
    if edit is not None:
        yield fix("make a new tensor here; the old one then stays as it was", edit)


def _kept_copy(facts: TraceIndex, stale: StaleSavedTensor) -> Iterator[Fix]:
    """Suggests to keep a copy in `forward`: `ctx.x = x.clone()`. It changes no value of the forward pass."""
    span = facts.span(stale.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or not isinstance(statement, ast.Assign) or plain_name(statement.value) is None:
        return
    if ast.unparse(statement.targets[0]).partition(".")[2] != stale.slot.partition(".")[2]:
        return
    edit = with_call(facts, facts.span_of(statement.value, span.file), "clone")
    yield fix(f"keep a copy as `{stale.slot}`: no later change reaches it", *filter(None, [edit]), place=span)


def _kept(facts: TraceIndex, stale: StaleSavedTensor, saving: Call) -> Label | None:
    """Labels the line of `forward` that set the attribute, else the call of `apply`."""
    return facts.label("saved_here", stale.site if stale.site is not None else saving.site, f"kept as `{stale.slot}`")


def _needed(facts: TraceIndex, backward: Backward) -> Label | None:
    return facts.label("needed_here", backward.site, "computes with the new values")
