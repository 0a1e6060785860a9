"""Finds the cause of `backward-not-called`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import parameters_without_gradient, path_ends
from tensorlens.analysis.training.replaced_parameters import replaced_parameters
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.edits.expressions import with_parentheses
from tensorlens.diagnostics.shared.optimizers import optimizer_label, optimizer_name
from tensorlens.diagnostics.shared.wording import finding, fix, named, with_method
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step, Uncalled
from tensorlens.records.report import Diagnostic, Fix, Label, Severity

CODE = "backward-not-called"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    if facts.trace.script.failure is not None or training.is_hidden:
        return
    for steps in training.optimizers:
        if any(gradient is not None for step in steps for gradient in step.gradients) or _is_changed(training, steps):
            continue
        passes = [b for b in facts.backwards if b.index < steps[-1].index and not b.failed]
        if not passes:
            yield _report(training, steps)
        elif _elsewhere(training, steps[-1], passes):
            yield _report_elsewhere(training, steps, passes[-1])


def _elsewhere(training: Training, step: Step, passes: list[Backward]) -> bool:
    """Returns whether backward was called, but only on results that do not depend on the optimizer's parameters."""
    numbers = {number for number in parameters_without_gradient(training) if number in step.parameters}
    replaced = {replacement.old for replacement, _ in replaced_parameters(training)}
    if not numbers or numbers & replaced or len(numbers) < len(step.parameters):
        return False
    states = [training.facts.state(root.tensor, b.index - 1) for b in passes for root in b.roots]
    return not any(s is not None and s.is_leaf for s in states) and not any(path_ends(training, numbers))


def _is_changed(training: Training, steps: list[Step]) -> bool:
    """Returns whether a parameter changed after the first step began: an optimizer need not use gradients."""
    moments = (m for number in steps[0].parameters for m in training.moments.get(number, ()))
    return any(moment.kind == "update" and moment.index >= steps[0].index for moment in moments)


def _report_elsewhere(training: Training, steps: list[Step], backward: Backward) -> Diagnostic:
    facts, last = training.facts, steps[-1]
    optimizer = optimizer_name(training, last)
    loss = facts.names.quoted(backward.roots[0].tensor, backward.index)
    made = training.optimizer_call(last)
    return finding(
        CODE,
        "warning",
        f"`{optimizer}.step()` changed nothing{_times(steps)}: backward reached none of its parameters",
        f"{loss} was not computed from them, and a step skips parameters whose `.grad` is None",
        [
            facts.label("rejected_here", last.site, "finds no gradient"),
            facts.label("needed_here", backward.site, "fills the gradients of other tensors"),
            optimizer_label(training, last),
        ],
        fixes=(
            fix(
                f"give `{optimizer}` the parameters that {loss} is computed from",
                place=None if made is None else facts.span(made.site),
            ),
        ),
        evidence={"steps": len(steps)},
    )


def _times(steps: list[Step]) -> str:
    return "" if len(steps) == 1 else f" in {len(steps)} calls"


def _forward(facts: TraceIndex, step: Step) -> Call | None:
    """Finds the first recorded call before a step that computed with the optimizer's parameters."""
    parameters = set(step.parameters)
    calls = (c for c in facts.calls if c.index < step.index and c.nodes[1] > c.nodes[0])
    return next((c for c in calls if parameters & {a.tensor for a in c.inputs}), None)


def _report(training: Training, steps: list[Step]) -> Diagnostic:
    facts, last = training.facts, steps[-1]
    computed = _forward(facts, last)
    uncalled = {u.site: u for u in facts.trace.inspection.uncalled if u.index <= last.index}
    optimizer = optimizer_name(training, last)
    severity: Severity = "warning" if computed is not None else "note"
    labels: list[Label | None] = [
        facts.label("rejected_here", access.site, "names the method and does not call it")
        for access in uncalled.values()
    ]
    labels.append(facts.label("needed_here" if labels else "rejected_here", last.site, "finds no gradient"))
    if computed is not None:
        labels.append(facts.label("graph_built_here", computed.site, f"computed from what `{optimizer}` trains"))
    return finding(
        CODE,
        severity,
        f"`{optimizer}.step()` changed nothing{_times(steps)}: no backward pass ran before it",
        "a step skips parameters whose `.grad` is None, and backward is what fills it",
        labels,
        fixes=tuple(_fixes(facts, list(uncalled.values()), last)),
        evidence={"steps": len(steps)},
    )


def _fixes(facts: TraceIndex, uncalled: list[Uncalled], step: Step) -> Iterator[Fix]:
    for access in uncalled:
        method = with_method(named(facts, access.tensor, access.index), "backward()")
        edit = with_parentheses(facts, access.site)
        yield fix(
            f"call it, with parentheses: {method}",
            *(() if edit is None else (edit,)),
            place=facts.span(access.site),
        )
    if not uncalled:
        yield fix("call `backward()` on the loss before this line", place=facts.span(step.site))
