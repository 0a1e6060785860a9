"""Names parameter groups that are added to an optimizer later, and whose rate the lines that set rates leave alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from math import isclose

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.written_rates import WrittenRate, place_of_group, written_rates
from tensorlens.diagnostics.shared.learning_rate_text import group_name, lines_that_set_rates
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup

_MIN_STEPS = 10
_MIN_RATES = 3  # different ones


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where the program sets the rates itself: a scheduler of PyTorch goes through all groups, or raises."""
    facts = training.facts
    lines = list(lines_that_set_rates(facts))
    if not lines or facts.trace.inspection.schedules:
        return
    is_chosen = any(_is_one(facts, each) for each in written_rates(facts))
    groups: dict[int, list[OptimizerGroup]] = defaultdict(list)
    for group in training.groups:
        groups[group.optimizer].append(group)
    for of_optimizer in groups.values():
        first = [each for each in of_optimizer if each.site == of_optimizer[0].site]
        late = [each for each in of_optimizer if each.site not in (of_optimizer[0].site, None) and each.found]
        late = [each for each in late if _MIN_STEPS <= max(each.found) < first[0].steps and not each.is_shared]
        if not late or not all(map(_keeps, late)) or (is_chosen and _has_own(late, first)):
            continue
        each = max(late, key=lambda group: max(group.found))
        courses = [_last(other, max(each.found)) for other in first]
        if any(len({f"{rate:.6g}" for rate in rates}) < _MIN_RATES for rates in courses):
            continue
        more = f" (so it is with {len(late) - 1} more)" if len(late) > 1 else ""
        others = group_name(training, first[0]) if len(first) == 1 else f"the {len(first)} groups before it"
        low, high = first[0].rates
        yield stands_out(
            f"the learning rate of {group_name(training, each)}, a group that is added later, is {each.made_rate:g} at "
            f"each of its steps{more}, {max(each.found):,} of them with a gradient, while that of {others} changes "
            f"between {low:.3g} and {high:.3g}",
            facts.label("optimizer_made_here", each.site, "the group is added here"),
            *(Label("state_changed_here", span, "sets rates") for span in lines[:1] if len(lines) == 1),
        )


def _is_one(facts: TraceIndex, written: WrittenRate) -> bool:
    """Returns whether a line sets the rate of one group, or of some, that it chooses."""
    parts = [node for node in ast.walk(written.group) if isinstance(node, ast.Subscript)]
    constant = ast.Constant | ast.UnaryOp | ast.Slice
    is_number = any(isinstance(each.slice, constant) for each in parts)
    if is_number or place_of_group(facts, written.file, written.group) is not None:
        return True
    loop = loop_around_line(facts, written.file, written.span.line)
    if not isinstance(loop, ast.For):
        return False
    choices = (node for node in ast.walk(loop) if isinstance(node, ast.If))
    return any(_is_slice(node) for node in ast.walk(loop.iter)) or any(
        node is written.node for choice in choices for node in ast.walk(choice)
    )


def _is_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and last_name(node.value) == "param_groups"


def _has_own(late: list[OptimizerGroup], first: list[OptimizerGroup]) -> bool:
    """Returns whether each group that is added later is made with a rate of its own."""
    return {each.made_rate for each in late}.isdisjoint(each.made_rate for each in first)


def _keeps(group: OptimizerGroup) -> bool:
    """Returns whether the rate of a group is the one that it was made with at each step."""
    return all(isclose(rate, group.made_rate, rel_tol=1e-9) for rate in group.rates)


def _last(group: OptimizerGroup, steps: int) -> tuple[float, ...]:
    """Returns the rates of a group at the last so many steps, or means of several in a row."""
    count = int(min(1.0, steps / max(group.steps, 1)) * len(group.course))
    return group.course[len(group.course) - count :]
