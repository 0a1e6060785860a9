"""Finds the cause of `backward-not-called`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import parameters_without_gradient, path_ends
from tensorlens.analysis.training.replaced_parameters import replaced_parameters
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import optimizer_label, optimizer_name
from tensorlens.diagnostics.shared.wording import finding, fix, named, op_text, with_method
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step, Uncalled
from tensorlens.records.report import Diagnostic, Label, Severity

CODE = "backward-not-called"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    if facts.trace.script.failure is not None or training.is_hidden:
        return
    for steps in training.optimizers:
        if any(gradient is not None for step in steps for gradient in step.gradients):
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


def _report_elsewhere(training: Training, steps: list[Step], backward: Backward) -> Diagnostic:
    facts, last = training.facts, steps[-1]
    optimizer = optimizer_name(training, last)
    loss = facts.names.quoted(backward.roots[0].tensor, backward.index)
    return finding(
        CODE,
        "warning",
        f"{_count(steps)} of `{optimizer}` changed nothing: no backward pass reached any of its parameters",
        f"{loss} was not computed from them, and an optimizer skips parameters whose `.grad` is None",
        [
            facts.label("rejected_here", last.site, f"`{optimizer}.step()` finds no gradient"),
            facts.label("needed_here", backward.site, f"{op_text(backward.op)} from {loss} leads elsewhere"),
            optimizer_label(training, last),
        ],
        fixes=(fix(f"give `{optimizer}` the parameters that {loss} is computed from"),),
        evidence={"steps": len(steps)},
    )


def _count(steps: list[Step]) -> str:
    return "1 step" if len(steps) == 1 else f"{len(steps)} steps"


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
    labels: list[Label | None] = [_named(facts, access) for access in uncalled.values()]
    role = "needed_here" if labels else "rejected_here"
    labels.append(facts.label(role, last.site, f"`{optimizer}.step()` finds no gradient and changes nothing"))
    if computed is not None:
        labels.append(facts.label("graph_built_here", computed.site, "computed from what the optimizer is to train"))
    cure = "call backward before `{0}.step()`" if not uncalled else "call it: `backward()`, with parentheses"
    return finding(
        CODE,
        severity,
        f"{_count(steps)} of `{optimizer}` changed nothing: no backward pass had given it a gradient",
        "an optimizer skips parameters whose `.grad` is None",
        labels,
        fixes=(fix(cure.format(optimizer)),),
        evidence={"steps": len(steps)},
    )


def _named(facts: TraceIndex, access: Uncalled) -> Label | None:
    method = with_method(named(facts, access.tensor, access.index), "backward")
    return facts.label("rejected_here", access.site, f"{method} is named here and not called")
