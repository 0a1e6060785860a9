"""Finds the cause of `zero-grad-after-backward`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cleared_gradients import ClearedGradients, cleared_gradients
from tensorlens.analysis.training.timeline import Moment, Training, cleared_at, training_of
from tensorlens.diagnostics.shared.edits.scopes import beside
from tensorlens.diagnostics.shared.edits.statements import moved_after
from tensorlens.diagnostics.shared.optimizers import optimizer_name, several, titled
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Span
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Edit, Fix


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    reported: set[tuple[int | None, int | None]] = set()
    for step in training.steps:
        lost = _lost(training, step)
        if lost:
            filled, cleared = lost[0][1:]
            place = (filled.event.site, cleared.event.site)
            if place not in reported:
                reported.add(place)
                yield _report(training, step, lost)
    if not reported:
        yield from _find_partly_cleared(training)


def _find_partly_cleared(training: Training) -> Iterator[Diagnostic]:
    """Reports updates that used only the last of several gradients: the same line computed the others, which were
    cleared."""
    groups: dict[tuple[int | None, int | None], list[ClearedGradients]] = {}
    for leaf in training.moments:
        cleared = cleared_gradients(training, leaf)
        if cleared is not None and isinstance(cleared.used.event, Step):
            groups.setdefault((cleared.filled.event.site, cleared.cleared.event.site), []).append(cleared)
    for group in groups.values():
        yield _report_partly_cleared(training, group)


def _lost(training: Training, step: Step) -> list[tuple[int, Moment, Moment]]:
    """Returns (parameter, what filled its gradient, what cleared it) for the gradients that a step did not find.

    Only if the step found no gradient at all, and no update had used those that were cleared.
    """
    lost = []
    for position, number in enumerate(step.parameters):
        cleared = cleared_at(training, step, position)
        if cleared is None and step.gradients[position] is not None:
            return []
        if not training.facts.requires_grad(number, step.index - 1):
            continue  # frozen: its gradient does no harm
        filled = None if cleared is None else training.last_moment(number, cleared.index, "fill")
        if cleared is not None and filled is not None:
            used = training.last_moment(number, cleared.index, "update")
            if used is None or used.index < filled.index:
                lost.append((number, filled, cleared))
    return lost


def _report(training: Training, step: Step, lost: list[tuple[int, Moment, Moment]]) -> Diagnostic:
    facts = training.facts
    number, filled, cleared = lost[0]
    name, names = titled(facts, [entry[0] for entry in lost])
    optimizer = optimizer_name(training, step)
    is_none = step.gradients[step.parameters.index(number)] is None
    return finding(
        "zero-grad-after-backward",
        "warning",
        f"the gradients of {name} were cleared before `{optimizer}.step()` could use them"
        if len(lost) > 1
        else f"the gradient of {name} was cleared before `{optimizer}.step()` could use it",
        f"`{optimizer}.step()` found {'no gradient' if is_none else 'zeros'}: what backward had computed was gone",
        [
            facts.label("cleared_here", cleared.event.site, f"sets {'it' if len(lost) == 1 else 'them'} to "
                        f"{'None' if is_none else 'zero'}"),
            facts.label("needed_here", filled.event.site, "computes the gradient"),
            facts.label("rejected_here", step.site, "finds no gradient" if is_none else "finds zeros"),
        ],
        fixes=(_reordering(facts, optimizer, step, (filled, cleared)),),
        evidence={"parameters": [facts.name(entry[0]) for entry in lost]},
        detail=names,
    )  # fmt: skip


def _reordering(facts: TraceIndex, optimizer: str, step: Step, moments: tuple[Moment, Moment]) -> Fix:
    """Says which line to move. A step above the backward pass has to go below it; else the clearing has to move."""
    filled, cleared = (moment.event.site for moment in moments)
    backward, stepped, clearing = facts.span(filled), facts.span(step.site), facts.span(cleared)
    if backward is None or stepped is None or clearing is None or backward.file != stepped.file:
        return fix(f"clear the gradients before backward, or after `{optimizer}.step()`", place=clearing)
    if backward.line > stepped.line and _same_function(facts, filled, step.site):
        text = f"move `{optimizer}.step()` below line {backward.line}, which computes the gradient"
        return fix(text, *_moved_below(facts, stepped, backward), place=stepped)
    after = _moved_below(facts, clearing, stepped) if clearing.line < stepped.line else ()
    if after:
        return fix(f"clear the gradients after line {stepped.line}, which uses them", *after, place=clearing)
    return fix(f"clear the gradients before line {backward.line}, or after line {stepped.line}", place=clearing)


def _moved_below(facts: TraceIndex, span: Span, target: Span) -> tuple[Edit, ...]:
    """Moves a statement below another line's statement in its block."""
    pair = beside(facts, span, target)
    return () if pair is None else moved_after(facts, span.file, pair[0].lineno, pair[1].lineno) or ()


def _same_function(facts: TraceIndex, one: int | None, other: int | None) -> bool:
    sites = facts.trace.sites
    return one is not None and other is not None and sites[one].function == sites[other].function


def _report_partly_cleared(training: Training, group: list[ClearedGradients]) -> Diagnostic:
    facts, first = training.facts, group[0]
    step = first.used.event
    assert isinstance(step, Step)
    optimizer = optimizer_name(training, step)
    name = several(facts, [cleared.leaf for cleared in group])
    passes = "the pass" if first.count == 1 else f"the {first.count} passes"
    return finding(
        "zero-grad-after-backward",
        "warning",
        f"`{optimizer}.step()` used the last of {first.count + 1} gradients: the others were cleared unused",
        f"if the gradients of all passes are to add up, those of {passes} before the last are lost",
        [
            facts.label("cleared_here", first.cleared.event.site, "clears what nothing has used"),
            facts.label("needed_here", first.filled.event.site, "computes the gradients"),
            facts.label("rejected_here", step.site, "uses the gradient of the last pass alone"),
        ],
        fixes=(
            fix(
                f"to add them up, clear once for each `{optimizer}.step()`, directly after it",
                *_clearing_after(facts, facts.span(first.cleared.event.site), facts.span(step.site)),
                place=facts.span(first.cleared.event.site),
            ),
        ),
        evidence={"parameters": [facts.name(cleared.leaf) for cleared in group], "passes": first.count},
        detail=(f"gradients of {name}; the same before each of {first.updates} steps",),
    )


def _clearing_after(facts: TraceIndex, clearing: Span | None, stepped: Span | None) -> tuple[Edit, ...]:
    """Moves a statement that is a call of `zero_grad()` below the step, into its block."""
    if clearing is None or stepped is None or clearing.file != stepped.file:
        return ()
    statement = statement_at(facts, clearing.file, clearing.line)
    functions = [function_around(facts, span.file, span.line) for span in (clearing, stepped)]
    if statement is None or not isinstance(statement, ast.Expr) or functions[0] is not functions[1]:
        return ()
    code = ast.unparse(statement.value)
    if ".zero_grad(" not in code or not isinstance(statement.value, ast.Call):
        return ()
    return moved_after(facts, clearing.file, clearing.line, stepped.line) or ()
