"""Finds the cause of `zero-grad-after-backward`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cleared_gradients import ClearedGradients, cleared_gradients
from tensorlens.analysis.training.timeline import Moment, Training, cleared_at, training_of
from tensorlens.diagnostics.shared.optimizers import optimizer_name, several
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic


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
    name = several(facts, [entry[0] for entry in lost])
    optimizer = optimizer_name(training, step)
    state = "None" if step.gradients[step.parameters.index(number)] is None else "zero"
    return finding(
        "zero-grad-after-backward",
        "warning",
        f"the gradient of {name} was cleared before `{optimizer}.step()` could use it",
        f"all {len(step.parameters)} gradients that the step looked for were cleared after backward had computed them"
        if len(step.parameters) > 1
        else "the step found no gradient: it was cleared after backward had computed it",
        [
            facts.label("cleared_here", cleared.event.site, f"cleared here: {state} from now on"),
            facts.label("needed_here", filled.event.site, f"{op_text(filled.event.op)} computes the gradient"),
            facts.label("rejected_here", step.site, "this step has no gradient to work with"),
        ],
        fixes=(fix(f"clear the gradients before backward, or after `{optimizer}.step()`"),),
        evidence={"parameters": [facts.name(entry[0]) for entry in lost]},
    )


def _report_partly_cleared(training: Training, group: list[ClearedGradients]) -> Diagnostic:
    facts, first = training.facts, group[0]
    step = first.used.event
    assert isinstance(step, Step)
    optimizer = optimizer_name(training, step)
    name = several(facts, [cleared.leaf for cleared in group])
    passes = "a backward pass" if first.count == 1 else f"{first.count} backward passes"
    return finding(
        "zero-grad-after-backward",
        "warning",
        f"the gradients of {passes} before each `{optimizer}.step()` were cleared: it used the last one alone",
        f"the same line computed them, and nothing had used those of {name} when they were cleared; "
        f"so it was before {first.updates} steps",
        [
            facts.label("cleared_here", first.cleared.event.site, "cleared here, unused"),
            facts.label("needed_here", first.filled.event.site, f"{op_text(first.filled.event.op)} computes them"),
            facts.label("rejected_here", step.site, "this step has the gradient of the last pass"),
        ],
        fixes=(fix(f"clear the gradients once for each `{optimizer}.step()`, after it"),),
        evidence={"parameters": [facts.name(cleared.leaf) for cleared in group], "passes": first.count},
    )
