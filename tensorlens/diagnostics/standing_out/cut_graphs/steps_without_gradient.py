"""Names parameters that have had gradients, but never at a step of an optimizer that holds them."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters_without_gradient import PathEnd, changed_while_training, path_ends_before
from tensorlens.diagnostics.shared.cut_facts import switch_of
from tensorlens.diagnostics.shared.cut_off_parameters import end_cause, end_labels
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup

_MIN_STEPS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds groups of which no step finds a gradient of some parameters, where a call ends their path to the loss."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or facts.trace.script.failure is not None:
        return
    for group in training.groups:
        left = _left_out(training, group)
        steps = _steps(training, group) if left else []
        numbers = {n for n in left if _is_trainable(training, n, steps)} if len(steps) >= _MIN_STEPS else set[int]()
        groups: dict[int, list[PathEnd]] = {}
        for end in path_ends_before(training.training, numbers, steps) if numbers else ():
            if end.kind == "cut":
                switch = switch_of(facts, end.cut)
                groups.setdefault(end.cut.call.site if switch is None else switch.site, []).append(end)
        for ends in groups.values():
            yield _sentence(training, group, ends)


def _left_out(training: MeasuredTraining, group: OptimizerGroup) -> set[int]:
    """Returns the parameters without a gradient at any step of the group's optimizer, that had one at another time."""
    if group.is_shared or group.steps < _MIN_STEPS or len(group.found) != len(group.parameters):
        return set()
    pairs = zip(group.parameters, group.found, strict=True)
    return {number for number, found in pairs if not found and number in training.training.had_gradient}


def _steps(training: MeasuredTraining, group: OptimizerGroup) -> list[Step]:
    """Returns the recorded steps of the optimizer of a group; none if another optimizer holds the same parameters."""
    held: dict[int, tuple[int, ...]] = {}
    for each in training.groups:
        held[each.optimizer] = held.get(each.optimizer, ()) + each.parameters
    own = held[group.optimizer]
    if sum(parameters == own for parameters in held.values()) > 1:
        return []
    name = f"{group.name}.step"
    return [step for step in training.training.steps if step.parameters == own and step.op == name]


def _is_trainable(training: MeasuredTraining, number: int, steps: list[Step]) -> bool:
    """Returns whether a parameter required grad at each step, and nothing else changed it between them."""
    facts = training.facts
    required = all(facts.requires_grad(number, step.index - 1) for step in steps)
    if not required or training.row(number) is None:
        return False
    return not changed_while_training(training.training, number, steps[0].index)


def _sentence(training: MeasuredTraining, group: OptimizerGroup, ends: list[PathEnd]) -> StandingOut:
    facts, first = training.facts, ends[0]
    rows = [row for end in sorted(ends, key=lambda end: end.number) if (row := training.row(end.number)) is not None]
    loss = facts.names.quoted(first.backward.roots[0].tensor, first.backward.index)
    text = f"none of the {group.steps} steps of `{group.name}` finds a gradient of {listed(rows)}: "
    text += end_cause(facts, first, loss, "it" if len(rows) == 1 else "them")
    made = facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here")
    return stands_out(text, *list(end_labels(facts, first, f"`{rows[0].name}`"))[:2], made)
