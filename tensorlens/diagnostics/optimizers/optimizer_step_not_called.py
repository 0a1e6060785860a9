"""Finds the cause of `optimizer-step-not-called`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import made_name
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic

CODE = "optimizer-step-not-called"
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


def _report(training: Training, made: Call, passes: list[Backward]) -> Diagnostic:
    facts, last = training.facts, passes[-1]
    parameters = {access.tensor for access in made.inputs}
    optimizer = made_name(facts, made)
    fed = parameters & {change.tensor for backward in passes for change in backward.gradients}
    filled = "its parameter" if len(parameters) == 1 else f"{len(fed)} of its {len(parameters)} parameters"
    clears = [training.last_moment(number, last.index, "clear") for number in sorted(fed)]
    cleared = next((moment for moment in clears if moment is not None), None)
    return finding(
        CODE,
        "note" if training.gradient_read & parameters else "warning",
        f"`{optimizer}` never made a step: {len(passes)} backward passes computed gradients that changed nothing",
        "a gradient moves a parameter only when something steps; none of the parameters changed after the first one",
        [
            facts.label("optimizer_made_here", made.site, f"`{made.op}` is made here, and no `step()` of it ran"),
            facts.label("needed_here", last.site, f"{op_text(last.op)} gives {filled} a gradient, unused"),
            None if cleared is None else facts.label("cleared_here", cleared.event.site, "cleared here, unused"),
        ],
        fixes=(fix(f"call `{optimizer}.step()`, with parentheses, after backward"),),
        evidence={"passes": len(passes), "parameters": len(parameters)},
    )
