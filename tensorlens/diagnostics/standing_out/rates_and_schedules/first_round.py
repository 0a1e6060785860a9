"""Names learning rates whose schedule has ended with the first of several rounds, as with the first task or window."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isclose

from tensorlens.analysis.training.first_rounds import first_round_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.round_rates import reads_round
from tensorlens.diagnostics.shared.learning_rate_text import group_name, lines_that_set_rates
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup

_FLOOR = 0.05  # of the highest rate
_MIN_COURSE, _MIN_FALL = 10, 3
_EARLY = 1.15  # a cosine with a lowest rate reaches it before its last step
_STEPPING = frozenset(("LambdaLR", "LinearLR", "PolynomialLR", "SequentialLR"))


def floor_of_first_round(training: MeasuredTraining, group: OptimizerGroup) -> Iterator[StandingOut]:
    """Finds a rate that rises and falls in the first round of a loop and stays low in all others.

    A scheduler gives it, or the only line that sets a rate of a group.
    """
    facts, course = training.facts, group.course
    low, high = min(course, default=0.0), max(course, default=0.0)
    rest = next((n for n, rate in enumerate(reversed(course)) if not isclose(rate, low, rel_tol=1e-6)), 0)
    moving = list(course[: len(course) - rest])
    if len(course) < _MIN_COURSE or len(moving) < _MIN_FALL or not rest or low > _FLOOR * high:
        return
    top = moving.index(max(moving))
    if moving[: top + 1] != sorted(moving[: top + 1]) or moving[top:] != sorted(moving[top:], reverse=True):
        return
    size = group.steps / len(course)
    own = (step for step in reversed(facts.trace.inspection.steps) if set(step.parameters) & set(group.parameters))
    site = next((step.site for step in own), None)
    at = (len(moving) - 1) * size, len(moving) * size * _EARLY
    has_plateaus = any(one == other for one, other in pairwise(moving[top:]))
    loop = None if site is None or has_plateaus else first_round_of(facts, site, group.steps, at)
    cause = _cause(training, group)
    spans = [each.span for each in cause if each is not None]
    if loop is not None and cause and not reads_round(facts, loop, spans):
        about, share = "" if size == 1 else "about ", round(100 * rest / len(course))
        yield stands_out(
            f"the learning rate of {group_name(training, group)} falls to {low:g} in the first round of a loop, and "
            f"stays there in its other rounds: {about}the last {share} % of {group.steps:,} steps",
            *cause,
            Label("called_here", loop, "the loop"),
            facts.label("optimizer_made_here", group.site, "made here"),
        )


def _cause(training: MeasuredTraining, group: OptimizerGroup) -> list[Label | None]:
    """Labels the scheduler that gives the rates of a group, or the only line that sets them."""
    facts = training.facts
    schedules = [each for each in facts.trace.inspection.schedules if each.number == training.measured.number]
    own = [each for each in schedules if each.optimizer == group.optimizer and each.steps]
    lines = list(lines_that_set_rates(facts))
    if own and not lines and {each.name for each in own} <= _STEPPING and not any(each.is_held for each in own):
        return [facts.label("optimizer_made_here", each.site, "its scheduler is made here") for each in own[:3]]
    is_only = len({each.optimizer for each in training.groups}) == 1
    if own or not is_only or len(lines) != 1 or lines != list(lines_that_set_rates(facts, of_groups=True)):
        return []
    return [Label("state_changed_here", lines[0], "a rate is set here")]
