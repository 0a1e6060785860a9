"""Names parameters that two optimizers hold and step in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, unless one optimizer is inside the other, or steps only when the other has ended."""
    facts = training.facts
    inside = {group.optimizer for group in training.groups if group.is_shared}
    groups = [group for group in training.groups if group.steps and group.optimizer not in inside]
    for one, other in combinations(groups, 2):
        numbers = set(one.parameters) & set(other.parameters)
        rows = [row for row in training.rows if row.tensor in numbers and row.statistics and row.statistics.filled]
        if one.optimizer == other.optimizer or not rows or not _take_turns(one, other):
            continue
        verb = "is" if len(rows) == 1 else "are"
        names = f"`{one.name}` and `{other.name}`" if one.name != other.name else f"two `{one.name}` optimizers"
        yield stands_out(
            f"{listed(rows)} {verb} in {names}, and both step",
            facts.label("optimizer_made_here", other.site, "the second is made here"),
            facts.label("optimizer_made_here", one.site, "the first is made here"),
        )


def _take_turns(one: OptimizerGroup, other: OptimizerGroup) -> bool:
    return one.turns[0] < other.turns[1] and other.turns[0] < one.turns[1]
