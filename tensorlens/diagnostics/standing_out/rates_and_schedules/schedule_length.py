"""Names learning-rate schedulers that make more steps than they are made for, or than their optimizer does, and those
that count epochs for steps."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from math import cos, isfinite, pi

from tensorlens.analysis.code_around import block_around, function_around, loop_around_line, statement_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.schedule_functions import is_divided
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import LearningRateSchedule, OptimizerGroup

_COSINE, _LAMBDA = "CosineAnnealingLR", "LambdaLR"
_ENDS_HIGH = 0.5  # of the highest rate
_HIGH = 0.1  # of the way from the lowest rate to the first one
_MIN_STEPS = 3  # of the optimizer
_FEW = 2  # a schedule that is made for so many times its steps ends early


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these schedulers: the rate rises again at the end, or has hardly begun to fall."""
    facts = training.facts
    if facts.trace.inspection.switches or facts.trace.script.outcome not in ("ok", "exit"):
        return
    schedules = [each for each in facts.trace.inspection.schedules if each.number == training.measured.number]
    made = Counter(each.optimizer for each in schedules)
    for each in schedules:
        groups = [group for group in training.groups if group.optimizer == each.optimizer and group.steps]
        if not groups or not each.is_known or each.is_held or made[each.optimizer] > 1:
            continue
        yield from _too_often(training, each, groups[0])
        if not each.made_for:
            continue
        if all(isfinite(rate) and rate > 0 for rate in groups[0].rates[1:]):
            yield from _too_long(training, each, groups[0])
            yield from _too_short(training, each, groups[0])


def _too_often(
    training: MeasuredTraining, schedule: LearningRateSchedule, group: OptimizerGroup
) -> Iterator[StandingOut]:
    """Says that a scheduler steps several times for each step of its optimizer, as after each of some micro-batches.

    Those after the last step of the optimizer do not count. A schedule may count examples or episodes: it is named if
    it is made for the steps of the optimizer, or if it steps in a loop beside a step of the optimizer, which each round
    of the loop around both makes.
    """
    steps = group.steps - schedule.before
    is_more = steps >= _MIN_STEPS and schedule.steps - schedule.idle >= _FEW * steps
    is_of_steps = schedule.made_for == steps
    if is_more and (is_of_steps or (schedule.made_for != schedule.steps and _is_in_parts(training, schedule, group))):
        yield stands_out(
            f"`{schedule.name}` makes {schedule.steps:,} steps, and `{group.name}`, whose learning rate it changes, "
            f"makes {steps:,}",
            training.facts.label("called_here", schedule.last, "the scheduler steps here"),
            training.facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
        )


def _is_in_parts(training: MeasuredTraining, schedule: LearningRateSchedule, group: OptimizerGroup) -> bool:
    """Returns whether a scheduler steps in a loop that is over before the next step of its optimizer."""
    facts, last = training.facts, training.facts.span(schedule.last)
    inner = None if last is None else loop_around_line(facts, last.file, last.line)
    if last is None or inner is None:
        return False
    own, function = set(group.parameters), function_around(facts, last.file, last.line)
    sites = {step.site for step in training.training.steps if not own.isdisjoint(step.parameters)}
    for span in map(facts.span, sites):
        statement = None if span is None else statement_around(facts, span)
        beside = [] if span is None or statement is None else block_around(facts, span.file, statement)
        nodes = [node for each in beside if each is not statement for node in ast.walk(each)]
        calls = [last_name(node.func) for node in nodes if isinstance(node, ast.Call)]
        if any(node is inner for node in nodes) or (function is not None and function.name in calls):
            return True
    return False


def _too_long(
    training: MeasuredTraining, schedule: LearningRateSchedule, group: OptimizerGroup
) -> Iterator[StandingOut]:
    """Says that a cosine rises again. One that makes whole waves and ends at its lowest rate is left alone."""
    length = schedule.made_for
    low, high = group.rates
    is_high = 1 + cos(pi * schedule.steps / length) > 2 * _HIGH
    is_used = len(group.course) > 0 and group.course[-1] > min(group.course)  # by the last step
    if schedule.name == _COSINE and schedule.steps > length and is_high and low < high and is_used:
        text = f"`{schedule.name}` makes {schedule.steps:,} steps, and `T_max` is {length:,}: "
        text += f"the learning rate of `{group.name}` rises again after {_each(schedule.steps, length)}"
        yield stands_out(
            f"{text}, and is between {low:.3g} and {high:.3g} at its {group.steps:,} steps",
            training.facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
            training.facts.label("called_here", schedule.last, "the scheduler steps here"),
        )


def _each(steps: int, length: int) -> str:
    times = (steps // length + 1) // 2
    return f"{length:,} steps" if times == 1 else f"each fall of {length:,} steps, {times:,} times"


def _too_short(
    training: MeasuredTraining, schedule: LearningRateSchedule, group: OptimizerGroup
) -> Iterator[StandingOut]:
    """Says that a scheduler steps once for several of the steps, or passes, that it is made for."""
    length = schedule.made_for
    if not 0 < schedule.steps * _FEW <= length:
        return
    counts = {**_passes_of(training, group), group.steps - schedule.before: f"steps of `{group.name}`"}
    whose = counts.get(length)
    if whose is None:
        return
    low, high = group.rates
    if schedule.name == _LAMBDA and (group.course[-1] < _ENDS_HIGH * high or not is_divided(training.facts, schedule)):
        return  # its function counts epochs, and makes steps of them
    rates = f"is {high:.3g} at each step" if low == high else f"is between {low:.3g} and {high:.3g}"
    says = f"of its `{schedule.option}`, which is"
    if schedule.name == _LAMBDA:
        says = f"of `{schedule.option}`, which its function reads and which is"
    yield stands_out(
        f"`{schedule.name}` makes {schedule.steps:,} of the {length:,} steps {says} the number of {whose}: the "
        f"learning rate {rates}",
        training.facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
        training.facts.label("called_here", schedule.last, "the scheduler steps here"),
    )


def _passes_of(training: MeasuredTraining, group: OptimizerGroup) -> dict[int, str]:
    """Returns the number of the passes that reach the parameters of an optimizer, with its words.

    A run that a second optimizer goes on with, as from a checkpoint, has some for each of them: it says nothing.
    """
    groups = [each for each in training.groups if each.optimizer == group.optimizer]
    own = {number for each in groups for number in each.parameters}
    others = [each for each in training.groups if each.optimizer != group.optimizer and each.steps]
    if any(own.intersection(each.parameters) for each in others if not each.is_shared and not group.is_shared):
        return {}
    passes = [each for each in training.facts.backwards if not each.failed]
    elsewhere = sum(own.isdisjoint(change.tensor for change in each.gradients) for each in passes)
    words = "backward passes that reach its parameters" if elsewhere else "backward passes"
    return {training.measured.passes - elsewhere: words}
