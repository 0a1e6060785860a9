"""Names learning-rate schedulers that never step, or that change rates which no step uses; optimizers made anew."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations

from tensorlens.analysis.code_around import function_around, loop_around_line, parent_of, statement_around
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.other_loads import other_loads
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import LearningRateSchedule, OptimizerGroup

_MIN_STEPS = 2
_MIN_MADE = 3
_MIN_MADE_FOR_SEVERAL = 5  # steps: fewer may be one for each task
_ROUNDS = frozenset("epoch epochs ep step steps it iter iteration".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CHOICES = ast.If | ast.IfExp | ast.BoolOp | ast.For | ast.While | ast.Try | ast.Match | ast.comprehension


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if facts.trace.inspection.switches or facts.trace.script.outcome not in ("ok", "exit"):
        return
    groups: dict[int, list[OptimizerGroup]] = defaultdict(list)
    for group in training.groups:
        groups[group.optimizer].append(group)
    lines: dict[tuple[int | None, int | None], list[LearningRateSchedule]] = defaultdict(list)
    for each in facts.trace.inspection.schedules:
        if each.number == training.measured.number and not each.is_held and each.optimizer in groups:
            lines[each.site, each.optimizer].append(each)
    for (_, optimizer), schedules in lines.items():
        own = groups[optimizer or 0]
        if len(schedules) >= _MIN_MADE and all(each.is_known and each.steps <= 1 for each in schedules):
            yield from _made_again(training, schedules, own)
            continue
        for schedule in schedules[-1:]:
            if not schedule.steps:
                yield from _never(training, schedule, own)
            else:
                yield from _idle(training, schedule, own)
    yield from _twice(training, lines.values(), groups)
    yield from _new_optimizers(training, groups)


def _never(
    training: MeasuredTraining, schedule: LearningRateSchedule, own: list[OptimizerGroup]
) -> Iterator[StandingOut]:
    steps = own[0].steps - schedule.before
    if schedule.is_known and steps >= _MIN_STEPS and not _may_step(training.facts, schedule):
        label = training.facts.label("optimizer_made_here", schedule.site, "the scheduler is made here")
        text = f"`{schedule.name}` makes no step, and `{own[0].name}`, which it is made for, makes {steps:,} after that"
        yield stands_out(text, label)


def _may_step(facts: TraceIndex, schedule: LearningRateSchedule) -> bool:
    """Returns whether the program steps a scheduler where the run did not get to, as in a later epoch: under a
    condition, or in a function that the program uses. Where the line that makes it gives it no name, it may be any."""
    span = facts.span(schedule.site)
    statement = None if span is None else statement_around(facts, span)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = (each for target in targets for each in ast.walk(target))
    names = {last_name(each) for each in parts} - {"", "self"}
    for file, tree in facts.trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            called = call.func
            if not isinstance(called, ast.Attribute) or called.attr != "step":
                continue
            name = last_name(called.value)
            is_own = name in names if names else not {"opt", "optim", "optimizer"} & {*words_of_last(name)}
            if is_own and _waits(facts, file, call):
                return True
    return False


def _waits(facts: TraceIndex, file: str, call: ast.Call) -> bool:
    """Returns whether a call is under a condition or in a loop, or in a function whose name the program reads."""
    node: ast.AST | None = call
    while node is not None and not isinstance(node, _CHOICES):
        if isinstance(node, _Function):
            return isinstance(node, ast.Lambda) or any(
                last_name(each) == node.name
                for _, tree in facts.trees()
                for each in ast.walk(tree)
                if isinstance(each, ast.Name | ast.Attribute)
            )
        node = parent_of(facts, file, node)
    return node is not None


def _twice(
    training: MeasuredTraining,
    lines: Iterable[list[LearningRateSchedule]],
    groups: dict[int, list[OptimizerGroup]],
) -> Iterator[StandingOut]:
    """Finds two schedulers of one kind that step for the same optimizer, while another optimizer has none."""
    stepping = [schedules[0] for schedules in lines if len(schedules) == 1 and schedules[0].steps]
    scheduled = {each.optimizer for each in training.facts.trace.inspection.schedules}
    without = [own[0] for number, own in groups.items() if number not in scheduled]
    without = [group for group in without if group.steps and not group.is_shared]
    for one, other in combinations(stepping, 2):
        if (one.optimizer, one.name) == (other.optimizer, other.name) and one.site != other.site and without:
            name, label = groups[one.optimizer or 0][0].name, training.facts.label
            yield stands_out(
                f"two `{one.name}` change the learning rate of one `{name}`, and another `{without[0].name}` has none",
                label("optimizer_made_here", other.site, "the second scheduler is made here"),
                label("optimizer_made_here", one.site, "the first scheduler is made here"),
                label("optimizer_made_here", without[0].site, "the optimizer without a scheduler"),
            )


def _idle(
    training: MeasuredTraining, schedule: LearningRateSchedule, own: list[OptimizerGroup]
) -> Iterator[StandingOut]:
    """Says that the optimizer of a scheduler steps no more, and that another one steps its parameters."""
    facts, numbers = training.facts, {number for group in own for number in group.parameters}
    others = [g for g in training.groups if g.steps and g.optimizer != own[0].optimizer and numbers & set(g.parameters)]
    if schedule.idle < _MIN_STEPS or not others or any(group.is_shared for group in (*own, *others)):
        return
    other = max(others, key=lambda group: group.turns[1])
    if other.turns[1] < own[0].turns[1]:
        return
    which = "all" if schedule.idle == schedule.steps else f"the last {schedule.idle:,} of"
    when = "makes no step" if not own[0].steps else "makes no step any more"
    whose = f"another `{other.name}` steps" if other.name == own[0].name else f"`{other.name}` steps"
    text = f"{which} {schedule.steps:,} steps of `{schedule.name}` change the learning rate of an `{own[0].name}` that"
    yield stands_out(
        f"{text} {when}: {whose} its parameters",
        facts.label("called_here", schedule.last, "the scheduler steps here"),
        facts.label("optimizer_made_here", other.site, f"the `{other.name}` that steps is made here"),
        facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
    )


def _made_again(
    training: MeasuredTraining, schedules: list[LearningRateSchedule], own: list[OptimizerGroup]
) -> Iterator[StandingOut]:
    """Says that a scheduler is made again and again for one optimizer, whose learning rates stay as they are."""
    if own[0].steps < _MIN_STEPS or any(group.rates[0] != group.rates[1] for group in own):
        return
    first = schedules[0]
    text = (
        f"one line makes {len(schedules):,} `{first.name}` for one `{own[0].name}`, and none makes more than one step"
    )
    label = training.facts.label("optimizer_made_here", first.site, "made again")
    yield stands_out(f"{text}: the learning rate stays the same", label)


def _new_optimizers(training: MeasuredTraining, groups: dict[int, list[OptimizerGroup]]) -> Iterator[StandingOut]:
    """Says that a line makes optimizers with a memory of earlier gradients for the same parameters, for a few steps
    each. Nothing else changes the parameters, as the start of another task would."""
    if any(other_loads(training.facts)):
        return
    lines: dict[tuple[object, ...], list[OptimizerGroup]] = defaultdict(list)
    for own in groups.values():
        lines[own[0].site, own[0].name, own[0].parameters].append(own[0])
    for made in lines.values():
        first, steps = made[0], max(each.steps for each in made)
        if len(made) < (_MIN_MADE if steps == 1 else _MIN_MADE_FOR_SEVERAL) or not all(
            0 < each.steps <= _memory(each) for each in made
        ):
            continue
        if any(training.writes(number) for number in first.parameters):
            continue
        if steps > 1 and not _is_each_round(training.facts, first.site):
            continue
        makes = "one step" if steps == 1 else f"at most {steps:,} steps"
        text = f"one line makes {len(made):,} `{first.name}` for the same parameters, and each makes {makes}"
        label = training.facts.label("optimizer_made_here", first.site, "made again")
        yield stands_out(f"{text}: none uses the average of earlier gradients that another one keeps", label)


def _is_each_round(facts: TraceIndex, site: int | None) -> bool:
    """Returns whether the source says that a line runs in each epoch: each task of several has an optimizer of its own.

    The names of the loop around the line say so, or that of the function, where it is in no loop."""
    span = facts.span(site)
    if span is None:
        return False
    loop, function = loop_around_line(facts, span.file, span.line), function_around(facts, span.file, span.line)
    if isinstance(loop, ast.For):
        names = [last_name(each) for each in ast.walk(loop.target) if isinstance(each, ast.expr)]
    else:
        names = [] if function is None else [function.name]
    return any(not _ROUNDS.isdisjoint(words_of_last(name)) for name in names)


def _memory(group: OptimizerGroup) -> float:
    """Returns how many earlier steps count in an optimizer's average of gradients: twice the mean of their age."""
    return 2 / (1 - group.momentum) if 0 < group.momentum < 1 else 0
