"""Names lines that set a learning rate in each round of a loop in which a scheduler sets it, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from tensorlens.analysis.naming.syntax import called_name, last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.rates_read import reads_rate
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import LearningRateSchedule

_MIN_STEPS = 3
_Loop = ast.For | ast.While
_RELATIVE = frozenset(
    "StepLR MultiStepLR ConstantLR LinearLR ExponentialLR CosineAnnealingLR PolynomialLR MultiplicativeLR".split()
)  # schedulers that change the present rate


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `group["lr"] = ...` and `scheduler.step()` below no condition in one loop, if the new rate does not depend
    on the present one."""
    facts = training.facts
    schedules = [each for each in facts.trace.inspection.schedules if each.number == training.measured.number]
    for schedule in schedules:
        span = facts.span(schedule.last)
        if schedule.steps < _MIN_STEPS or span is None or not schedule.is_known or schedule.is_held:
            continue
        loop = _loop_with(facts, span.file, span.line)
        writes = [] if loop is None else [each for each, of_group in _always(loop) if _sets_rate(each, of_group)]
        optimizers = {group.optimizer for group in training.groups}
        if loop is None or len(writes) != 1 or len(schedules) != 1 or optimizers != {schedule.optimizer}:
            continue
        is_used = schedule.name in _RELATIVE and not _steps_between(facts, (span.file, loop), writes[0], span.line)
        if not is_used and not reads_rate(facts, writes[0].value, loop, _owners(loop, span.line)):
            yield _sentence(facts, schedule, (span.file, writes[0]))


def _loop_with(facts: TraceIndex, file: str, line: int) -> _Loop | None:
    """Returns the loop that has a line in its body, below no condition and in no other loop."""
    loops = (node for node in ast.walk(facts.tree(file)) if isinstance(node, _Loop))
    return next((loop for loop in loops if any(each.lineno == line for each in loop.body)), None)


def _always(loop: _Loop) -> Iterator[tuple[ast.stmt, str]]:
    """Yields the statements that each round of a loop runs, and those of a loop over parameter groups, these with the
    variable for the group."""
    for statement in loop.body:
        yield statement, ""
        if isinstance(statement, ast.For) and ast.unparse(statement.iter).endswith(".param_groups"):
            yield from ((each, plain_name(statement.target) or "") for each in statement.body)


def _sets_rate(statement: ast.stmt, of_group: str) -> TypeGuard[ast.Assign]:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript) or ast.unparse(target.slice) != "'lr'":
        return False
    group = ast.unparse(target.value)
    return group == of_group or ".param_groups[" in group


def _owners(loop: _Loop, line: int) -> set[str]:
    """Returns the names of the optimizer, its group and its scheduler, which steps in a line of a loop."""
    found: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute) and node.attr == "param_groups":
            found.add(last_name(node.value))
        elif isinstance(node, ast.For) and ast.unparse(node.iter).endswith(".param_groups"):
            found.add(last_name(node.target))
        elif isinstance(node, ast.Call) and node.lineno == line and called_name(node) == "step":
            found.add(last_name(node.func.value) if isinstance(node.func, ast.Attribute) else "")
    return found - {""}


def _steps_between(facts: TraceIndex, place: tuple[str, _Loop], write: ast.stmt, line: int) -> bool:
    """Returns whether the optimizer steps after a line of a loop sets the rate, before the scheduler steps in another.
    If not, the scheduler changes what the line has set, and the step uses both."""
    file, loop = place
    spans = (facts.span(site) for step in facts.trace.inspection.steps if step.site is not None
             for site in facts.call_chain(step.site))  # fmt: skip
    lines = {span.line for span in spans if span is not None and span.file == file}
    order = [
        kind
        for statement in loop.body
        for kind, found in (("set", {write.lineno}), ("scheduler", {line}), ("step", lines))
        if any(statement.lineno <= each <= (statement.end_lineno or statement.lineno) for each in found)
    ]
    after = [*order, *order][order.index("set") + 1 :]
    return "step" in after[: after.index("scheduler")]


def _sentence(facts: TraceIndex, schedule: LearningRateSchedule, place: tuple[str, ast.stmt]) -> StandingOut:
    file, statement = place
    return stands_out(
        f"`{facts.code_of(statement, file)}` sets the learning rate in each round of a loop in which a "
        f"`{schedule.name}` changes it, {schedule.steps:,} times: a step uses only one of the two",
        Label("state_changed_here", facts.span_of(statement, file), "set in each round"),
        facts.label("called_here", schedule.last, "the scheduler steps here"),
        facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
    )
