"""Finds the cause of `frozen-parameter-still-updated`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around, statement_at
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.frozen import is_frozen_for_another
from tensorlens.analysis.training.timeline import GRAD_SET, Moment, Training, cleared_at, training_of
from tensorlens.diagnostics.shared.edits.expressions import without_keyword
from tensorlens.diagnostics.shared.edits.scopes import added_after
from tensorlens.diagnostics.shared.optimizers import optimizer_name, titled
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Edit, Label

CODE = "frozen-parameter-still-updated"


@dataclass(frozen=True, slots=True)
class Moved:
    """A parameter that a step changed without a new gradient."""

    number: int
    filled: Moment
    cause: Call  # what froze it, or set its gradient to zero


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    reported: set[tuple[int, int | None]] = set()
    for step in training.steps:
        for frozen, moved in ((True, _frozen(training, step)), (False, _without_gradient(training, step))):
            if moved and (moved[0].cause.site, step.site) not in reported:
                reported.add((moved[0].cause.site, step.site))
                yield _report(training, step, moved, frozen)


def _frozen(training: Training, step: Step) -> list[Moved]:
    """Finds the parameters that a step changed with an old gradient, although they no longer required grad."""
    facts, moved = training.facts, []
    for number, gradient in zip(step.parameters, step.gradients, strict=True):
        if gradient is None or facts.requires_grad(number, step.index - 1):
            continue
        switch = _switched_off(facts, number, step.index)
        filled = None if switch is None else training.last_moment(number, switch.index, "fill", "touch")
        touched = training.last_moment(number, step.index, "touch")
        if switch is None or filled is None or (touched is not None and touched.index > switch.index):
            continue
        if _changed_by(training, step, number) and not is_frozen_for_another(training, step, number):
            moved.append(Moved(number, filled, switch))
    return moved


def _without_gradient(training: Training, step: Step) -> list[Moved]:
    """Finds the parameters that a step changed by momentum or weight decay alone.

    Every gradient of the step had been set to zero after an update had used it.
    """
    moved = []
    for position, number in enumerate(step.parameters):
        cleared = cleared_at(training, step, position)
        if cleared is None and step.gradients[position] is not None:
            return []
        if cleared is None or step.gradients[position] is None or not isinstance(cleared.event, Call):
            continue
        filled = training.last_moment(number, cleared.index, "fill")
        used = training.last_moment(number, cleared.index, "update")
        if filled is None or used is None or used.index < filled.index or number not in step.carried:
            continue
        if _changed_by(training, step, number):
            moved.append(Moved(number, filled, cleared.event))
    return moved


def _switched_off(facts: TraceIndex, number: int, before: int) -> Call | None:
    return facts.call(facts.states.last_requiring_grad(number, before))


def _changed_by(training: Training, step: Step, number: int) -> bool:
    own = range(step.index, _end(training, step))
    moments = (m for m in training.moments.get(number, ()) if m.index in own)
    return any(m.kind == "update" and isinstance(m.event, Call) for m in moments)


def _end(training: Training, step: Step) -> int:
    """Returns the index of the first event that is not a call of the step itself."""
    end = step.index
    while (call := training.facts.call(end)) is not None and call.within == step.op:
        end += 1
    return end


def _report(training: Training, step: Step, moved: list[Moved], frozen: bool) -> Diagnostic:
    facts, first = training.facts, moved[0]
    name, names = titled(facts, [entry.number for entry in moved])
    optimizer = optimizer_name(training, step)
    if frozen:
        title = f"`{optimizer}.step()` changed {name}, although {'it is' if len(moved) == 1 else 'they are'} frozen"
        why = "freezing stops new gradients; the step used the old gradient that is still in `.grad`"
        cause = facts.label("flag_changed_here", first.cause.site, "frozen here; the old `.grad` stays")
        cure = "set `.grad = None` too: a step then leaves a frozen parameter as it is"
    else:
        title = f"`{optimizer}.step()` changed {name}, although the gradient was zero"
        why = "momentum and weight decay move a parameter whose gradient is zero; a parameter without one is skipped"
        cause = facts.label("cleared_here", first.cause.site, "sets the gradient to zero, not to None")
        cure = "set the gradient to None, as `zero_grad()` does without arguments: the step then skips it"
    event = first.filled.event
    labels: list[Label | None] = [
        facts.label("needed_here", step.site, "changes it" if len(moved) == 1 else "changes them"),
        cause,
        facts.label("accumulated_here", event.site, "sets `.grad`" if event.op == GRAD_SET else "fills `.grad`"),
    ]
    evidence: dict[str, object] = {"parameters": [facts.name(entry.number) for entry in moved]}
    place = facts.span(first.cause.site)
    return finding(
        CODE,
        "warning",
        title,
        why,
        labels,
        fixes=(fix(cure, *_edits(facts, first.cause, frozen), place=place),),
        evidence=evidence,
        detail=names,
    )


def _edits(facts: TraceIndex, cause: Call, frozen: bool) -> tuple[Edit, ...]:
    """Drops the old gradient where a parameter is frozen, or sets a gradient to None in place of zero."""
    span = facts.span(cause.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None:
        return ()
    if frozen:
        simple = statement_around(facts, span) or statement
        name, kind = _frozen_object(simple, facts.trace.sites[cause.site].through)
        code = {"tensor": f"{name}.grad = None", "module": f"{name}.zero_grad()"}.get(kind)
        edit = None if code is None else added_after(facts, cause.site, code)
        return () if edit is None else (edit,)
    node = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ()
    kept = node.func.attr == "zero_grad" and len(node.keywords) == 1 and not node.args
    edit = without_keyword(facts, node, "set_to_none", span.file) if kept else None
    receiver = plain_name(node.func.value)
    if node.func.attr == "zero_" and receiver is not None and receiver.endswith(".grad"):
        edit = Edit(facts.span_of(statement, span.file), f"{receiver} = None")
    return () if edit is None else (edit,)


def _frozen_object(statement: ast.stmt, through: str) -> tuple[str | None, str]:
    """Returns what a statement freezes, and whether it is a "tensor" or a "module": `p.requires_grad = False`."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target = statement.targets[0]
        return plain_name(target.value), "tensor" if target.attr == "requires_grad" else ""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return plain_name(call.func.value), "module" if through.endswith("requires_grad_") else "tensor"
    return None, ""
