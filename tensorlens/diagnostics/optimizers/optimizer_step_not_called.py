"""Finds the cause of `optimizer-step-not-called`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import made_name
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic

CODE = "optimizer-step-not-called"
LAST = 20  # numbers read from torch that are followed back
FEWEST = 3  # backward passes: fewer may be there to look at the gradients


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    if facts.trace.script.outcome not in ("ok", "exit") or training.is_hidden:
        return
    for made in facts.calls:
        if not made.op.startswith("optim.") or made.op.endswith(".add_param_group"):
            continue
        parameters = {access.tensor for access in made.inputs}
        passes = [b for b in facts.backwards if b.index > made.index and parameters & {c.tensor for c in b.gradients}]
        if len(passes) >= FEWEST and not _any_changed(training, parameters) and not _scaled(facts, parameters):
            yield _report(training, made, passes)


def _any_changed(training: Training, parameters: set[int]) -> bool:
    """Returns whether an optimizer stepped one of the parameters, or something else changed one."""
    return bool(parameters & training.stepped) or any(training.is_updated(number) for number in parameters)


def _scaled(facts: TraceIndex, parameters: set[int]) -> bool:
    """Returns whether a `GradScaler` makes the steps: it skips a step if a gradient overflowed."""
    calls = (call for call in facts.calls if call.op == "GradScaler.step")
    return any(parameters & {access.tensor for access in call.inputs} for call in calls)


def _is_looked_at(training: Training, parameters: set[int]) -> bool:
    """Returns whether the script reads the gradients, or a number computed from them, such as their norm."""
    if training.gradient_read & parameters:
        return True
    facts = training.facts
    gradients = {number for number, leaf in training.gradient_of.items() if leaf in parameters}
    leaving = [call for call in facts.calls if call.op in OPS_LEAVING_TORCH and call.inputs][-LAST:]
    above = (inner for call in leaving for _, inner in ancestry(facts, call.inputs[0].tensor, call.index))
    return any(access.tensor in gradients for inner in above for access in inner.inputs)


def _report(training: Training, made: Call, passes: list[Backward]) -> Diagnostic:
    facts, last = training.facts, passes[-1]
    parameters = {access.tensor for access in made.inputs}
    optimizer = made_name(facts, made)
    fed = parameters & {change.tensor for change in last.gradients}
    filled = "its parameter" if len(parameters) == 1 else f"{len(fed)} of its {len(parameters)} parameters"
    clears = [training.last_moment(number, last.index, "clear") for number in sorted(fed)]
    cleared = next((moment for moment in clears if moment is not None), None)
    return finding(
        CODE,
        "note" if _is_looked_at(training, parameters) else "warning",
        f"`{optimizer}.step()` never ran: {len(passes)} backward passes changed none of its parameters",
        "backward only computes gradients; a parameter changes when an optimizer makes a step",
        [
            facts.label("optimizer_made_here", made.site, "no `step()` of this optimizer ran"),
            facts.label("needed_here", last.site, f"gives {filled} a gradient"),
            None if cleared is None else facts.label("cleared_here", cleared.event.site, "clears the gradients unused"),
        ],
        fixes=(fix(f"call `{optimizer}.step()`, with parentheses, after this line", place=facts.span(last.site)),),
        evidence={"passes": len(passes), "parameters": len(parameters)},
    )
