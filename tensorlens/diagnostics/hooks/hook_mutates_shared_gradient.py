"""Finds the cause of `hook-mutates-shared-gradient`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.writes import as_new_tensor, new_value, target_of
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic, Edit


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Finds hooks that changed the gradients of other tensors, in a run with `--reference`.

    In the second run each hook gets its own copy of the gradient. The comparison shows which other gradients had
    changed.
    """
    if facts.trace.reference is None or not facts.trace.reference.differences:
        return
    reported: set[int] = set()
    stale = {backward_of(facts, saved.index) for saved in facts.trace.inspection.stale}
    for run in facts.trace.callbacks.runs:
        backward = backward_of(facts, run.index)
        if run.registration in reported or backward is None or backward in stale:
            continue
        others = _changed_gradients(facts, run, backward)
        write = _write(facts, run, backward) if others else None
        if write is not None:
            reported.add(run.registration)
            yield _report(facts, run, backward, write, others)


def _write(facts: TraceIndex, run: Run, backward: Backward) -> Call | None:
    """Finds the call in a tensor hook that changed the given gradient in place."""
    if facts.trace.callbacks.registrations[run.registration].kind != "tensor hook":
        return None
    runs = facts.trace.callbacks.runs
    before = runs[: next(position for position, each in enumerate(runs) if each is run)]
    begun = max([backward.started, *(each.index for each in before)])  # hooks run one after the other
    inside = (call for call in facts.calls if begun <= call.index < run.index)
    return next((call for call in inside if any(write.tensor in run.given for write in call.writes)), None)


def _changed_gradients(facts: TraceIndex, run: Run, backward: Backward) -> list[int]:
    """Lists the tensors, except the hook's own, whose gradients of this pass differ in the second run."""
    reference = facts.trace.reference
    target = facts.trace.callbacks.registrations[run.registration].target
    differences = () if reference is None else reference.differences
    return [d.tensor for d in differences if d.backward == backward.index and d.tensor != target]


def _returned(facts: TraceIndex, write: Call) -> tuple[Edit, ...]:
    """Makes the edit of a hook that ends with its only write, or that returns what it wrote to."""
    span = facts.span(write.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    function = None if span is None else function_around(facts, span.file, span.line)
    target = target_of(statement)
    if span is None or statement is None or function is None or not isinstance(target, ast.Name):
        return ()
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if returns and all(ast.unparse(node) == f"return {target.id}" for node in returns):
        edit = as_new_tensor(facts, span.file, statement)
        return () if edit is None else (edit,)
    value = new_value(facts, span.file, statement)
    if returns or value is None or function.body[-1] is not statement:
        return ()
    return (Edit(facts.span_of(statement, span.file), f"return {value}"),)


def _report(facts: TraceIndex, run: Run, backward: Backward, write: Call, others: list[int]) -> Diagnostic:
    registration = facts.trace.callbacks.registrations[run.registration]
    name = facts.trace.callbacks.functions[registration.function].name
    target = "its tensor" if registration.target is None else named(facts, registration.target)
    other = named(facts, others[0], backward.index)
    return finding(
        "hook-mutates-shared-gradient",
        "warning",
        f"the hook `{name}` of {target} also changed the gradient of {other}",
        "several tensors share one gradient in memory, and a hook that writes into it changes it for all of them",
        [
            facts.label("modified_here", write.site, "writes into the gradient that it was given"),
            facts.label("hook_registered_here", registration.site, f"`{name}` is registered on {target}"),
            facts.label("needed_here", backward.site, f"{other} gets the changed gradient"),
        ],
        notes=proof_notes(facts, backward, others),
        fixes=(
            fix(
                "return a new gradient from the hook instead of changing this one",
                *_returned(facts, write),
                place=facts.span(write.site),
            ),
        ),
        evidence={"tensors": [facts.name(number) for number in others]},
    )
