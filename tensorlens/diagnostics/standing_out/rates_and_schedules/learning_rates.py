"""Names learning rates of zero, those that shrink or grow a thousandfold, and parameters that stay as they are."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from math import isclose, isfinite

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.learning_rate_text import group_name, lines_that_set_rates
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.standing_out.rates_and_schedules.chosen_groups import has_used_up, is_zero_written
from tensorlens.diagnostics.standing_out.rates_and_schedules.first_round import floor_of_first_round
from tensorlens.records.eager import COARSEST, EPSILON
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup

_SMALL = 1 / 1000  # of the highest rate
_LOW = 1 / 100  # of the rate that a group was made with
_LOW_TOP = 1 / 20  # likewise, where the highest rate of a function is behind
_HALF = 1e-4  # the dtypes of half precision have a coarser epsilon
_NOISE = 1e-4  # of the highest norm of a gradient


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    for group in training.groups:
        low, high = group.rates
        if not group.steps or group.is_shared or not (isfinite(low) and isfinite(high)):
            continue
        if low == high == 0 and is_zero_written(training, group):
            continue
        if low == high == 0:
            steps = "its only step" if group.steps == 1 else f"each of its {group.steps} steps"
            text = f"the learning rate of {group_name(training, group)} is 0 at {steps}"
            yield stands_out(text, _made(training, group), *_schedulers(training, group), _set(training, group))
        elif way := _way(group):
            text = f"the learning rate of {group_name(training, group)} {way}"
            yield stands_out(text, _made(training, group), *_schedulers(training, group), _set(training, group))
        else:
            yield from floor_of_first_round(training, group)
    yield from _replaced(training)
    yield from _unmoved(training)


def _replaced(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds groups that were made with several learning rates and have one at each step, rates that a scheduler keeps
    far below the one that a group was made with, and groups with a rate of their own that hold no parameters."""
    loaded = {each.optimizer for each in training.facts.trace.inspection.loaded_rates if not each.is_scheduled}
    resumed = {each.optimizer for each in training.facts.trace.inspection.loaded_rates}
    scheduled = {each.optimizer for each in training.facts.trace.inspection.schedules}
    optimizers: dict[int, list[OptimizerGroup]] = defaultdict(list)
    for group in training.groups:
        if group.steps and not group.is_shared and group.optimizer not in loaded:
            optimizers[group.optimizer].append(group)
    for groups in optimizers.values():
        filled = [group for group in groups if group.parameters]
        made = sorted({group.made_rate for group in filled})
        rates = {group.course for group in filled}
        if len(made) > 1 and len(rates) == 1 and made[0] > 0:
            text = " and ".join(f"{rate:g}" for rate in (made[0], made[-1]))
            is_exact = len(groups[0].course) == groups[0].steps
            same = "the same rate at each of its" if is_exact else "on average the same rates in its"
            yield stands_out(
                f"groups of `{groups[0].name}` were made with learning rates of {text}, and have {same} "
                f"{groups[0].steps:,} steps",
                *_setting(training, groups[0]),
                *_schedulers(training, groups[0]),
                _made(training, groups[0]),
            )
        for group in groups:
            high, is_factor = group.rates[1], group.made_rate == 1  # a schedule of rates themselves is made for 1
            share = _LOW_TOP if _is_over_top(training, group) else _LOW
            is_low = not is_factor and 0 < high < share * group.made_rate and not _still_grows(group)
            if group.optimizer in scheduled and is_low and group.optimizer not in resumed:
                text = (
                    f"{group_name(training, group)} was made with a learning rate of {group.made_rate:g}, and its steps"
                )
                yield stands_out(f"{text} use at most {high:g}", *_schedulers(training, group), _made(training, group))
            elif _is_squared(training, group):
                yield stands_out(
                    f"{group_name(training, group)} was made with a learning rate of {group.made_rate:g}, and its "
                    f"steps use at most {high:g}, its square: `LambdaLR` multiplies the rate by what its function "
                    "returns",
                    *_schedulers(training, group),
                    _made(training, group),
                )
            elif not group.parameters and filled and group.made_rate not in made and has_used_up(training.facts):
                text = (
                    f"a group of `{group.name}`, made with a learning rate of {group.made_rate:g}, holds no parameters"
                )
                yield stands_out(text, _made(training, group))


def _still_grows(group: OptimizerGroup) -> bool:
    """Returns whether the rates are those of the beginning of a warm-up."""
    course = list(group.course)
    return course == sorted(course) and course[-2:-1] < course[-1:]


def _is_over_top(training: MeasuredTraining, group: OptimizerGroup) -> bool:
    """Returns whether the rates of a `LambdaLR` have fallen after they grew: no warm-up goes on."""
    schedules = (s for s in training.facts.trace.inspection.schedules if s.number == training.measured.number)
    names = [each.name for each in schedules if each.optimizer == group.optimizer and each.steps]
    top = group.course.index(max(group.course)) if group.course else 0
    return names == ["LambdaLR"] and 0 < top < len(group.course) - 1 and group.made_rate < 1


def _is_squared(training: MeasuredTraining, group: OptimizerGroup) -> bool:
    """Returns whether the function of a `LambdaLR` returns rates, where a factor is expected: its highest value is the
    rate that each group was made with.

    A course that only grows is the beginning of a warm-up, and one that goes on after `last_epoch` has lost its top.
    """
    schedules = (s for s in training.facts.trace.inspection.schedules if s.number == training.measured.number)
    own = [each for each in schedules if each.optimizer == group.optimizer and each.steps]
    if [each.name for each in own] != ["LambdaLR"] or list(group.course) == sorted(group.course):
        return False
    span = training.facts.span(own[0].site)
    node = None if span is None else training.facts.names.syntax.node(span)
    if isinstance(node, ast.Call) and (len(node.args) > 2 or any(each.arg == "last_epoch" for each in node.keywords)):
        return False
    groups = [each for each in training.groups if each.optimizer == group.optimizer]
    return all(0 < each.made_rate < 1 and isclose(each.rates[1], each.made_rate**2, rel_tol=1e-6) for each in groups)


def _way(group: OptimizerGroup) -> str:
    """Says how a learning rate changes that is below a thousandth of its highest for most of the run.

    A warm-up and a decay to zero are that small in a few steps only. One that rises before it falls may go on to a low
    rate for a phase of its own: it is said if it still falls in the second half.
    """
    course = group.course
    small = sum(rate < _SMALL * max(course) for rate in course)
    if 2 * small <= len(course) or group.rates[0] < 0:
        return ""
    about = "" if len(course) == group.steps else "about "  # a rate of the course is the mean of several steps
    way = f"from {about}{course[0]:g} to {about}{course[-1]:g} in {group.steps} steps"
    if list(course) == sorted(course):
        return f"grows {way}"
    if list(course) == sorted(course, reverse=True):
        return f"falls {way}"
    top, half = course.index(max(course)), list(course[len(course) // 2 :])
    rises, falls = list(course[: top + 1]), list(course[top:])
    if rises != sorted(rises) or falls != sorted(falls, reverse=True) or len(set(half)) < len(half):
        return ""
    return f"rises to {about}{course[top]:g} and falls to {about}{course[-1]:g} in {group.steps} steps"


def _made(training: MeasuredTraining, group: OptimizerGroup) -> Label | None:
    return training.facts.label("optimizer_made_here", group.site, "made here")


def _schedulers(training: MeasuredTraining, group: OptimizerGroup) -> list[Label | None]:
    """Labels the lines that make the schedulers that step for the optimizer of a group."""
    facts = training.facts
    schedules = [each for each in facts.trace.inspection.schedules if each.number == training.measured.number]
    own = [each for each in schedules if each.optimizer == group.optimizer and each.steps and not each.is_held]
    return [facts.label("optimizer_made_here", each.site, "its scheduler is made here") for each in own[:3]]


def _set(training: MeasuredTraining, group: OptimizerGroup) -> Label | None:
    """Labels the only line that sets rates, where no scheduler steps."""
    lines = [] if _schedulers(training, group) or _others_set(training, group) else _set_lines(training)
    return Label("state_changed_here", lines[0], "a rate is set here") if len(lines) == 1 else None


def _setting(training: MeasuredTraining, group: OptimizerGroup) -> list[Label]:
    """Labels the lines that set the rates of an optimizer which differ from those that it was made with.

    Other lines may set those of another optimizer; the only line of the program sets both where no scheduler steps."""
    lines, is_only = _set_lines(training), len(list(lines_that_set_rates(training.facts))) == 1
    if _others_set(training, group) and (not is_only or _schedulers(training, group)):
        return []
    text = "a rate is set here" if len(lines) == 1 else "a rate may be set here"  # one of several need not have run
    return [Label("state_changed_here", each, text) for each in lines[:3]]


def _set_lines(training: MeasuredTraining) -> list[Span]:
    lines = lines_that_set_rates(training.facts, of_groups=True)
    return list({(each.file, each.line): each for each in lines}.values())


def _others_set(training: MeasuredTraining, group: OptimizerGroup) -> bool:
    """Returns whether a rate of another optimizer is not always the one that it was made with."""
    others = [each for each in training.groups if each.optimizer != group.optimizer and each.steps]
    return any(each.is_shared or each.rates != (each.made_rate, each.made_rate) for each in others)


def _unmoved(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters with the same values as before the first step, although each step had a gradient for them."""
    groups: dict[tuple[int, int, str], list[ParameterRow]] = {}
    highest = max((norm for each in training.statistics.values() for norm in each.norms), default=0.0)
    for row in training.rows:
        group, statistics = row.group, row.statistics
        if group is None or statistics is None or row.movement is None or group.rates[1] <= 0:
            continue
        has_moved = row.has_moved or training.writes(row.tensor) or not isfinite(row.movement.size)
        if not group.steps or has_moved or statistics.filled == statistics.zero or statistics.nonfinite:
            continue
        made_as = training.facts.tensor(row.tensor).dtype
        dtype = "half precision" if statistics.half_steps and EPSILON.get(made_as, COARSEST) < _HALF else made_as
        if max(statistics.norms) <= max(EPSILON.get(dtype, COARSEST) * row.movement.size, _NOISE * highest):
            continue  # rounding, as in a bias before a normalisation
        groups.setdefault((group.optimizer, group.group, dtype), []).append(row)
    for (_, _, dtype), rows in groups.items():
        group = rows[0].group
        assert group is not None
        verb = "is" if len(rows) == 1 else "are"
        rate = (
            f", with a learning rate of at most {group.rates[1]:g}"
            if isfinite(group.rates[1])
            else ", with no learning rate"
        )
        steps = "the only step" if group.steps == 1 else f"{group.steps} steps"
        norm = max(norm for row in rows if row.statistics is not None for norm in row.statistics.norms)
        text = f"{listed(rows)} ({dtype}) {verb} the same after {steps} of `{group.name}` as before{rate}"
        passes = training.facts.label("needed_here", rows[0].passes[-1] if rows[0].passes else None,
                                      "backward gives a gradient")  # fmt: skip
        yield stands_out(f"{text} and gradients with a norm of up to {norm:.2g}", _made(training, group), passes)
