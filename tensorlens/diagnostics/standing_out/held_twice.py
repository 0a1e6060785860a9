"""Names parameters that two optimizers hold and step in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, unless one optimizer is inside the other, or steps only when the other has ended."""
    inside = {group.optimizer for group in training.groups if group.is_shared}
    groups = [group for group in training.groups if group.steps and group.optimizer not in inside]
    pairs: dict[tuple[int, int], tuple[OptimizerGroup, OptimizerGroup, set[int]]] = {}
    for one, other in combinations(groups, 2):
        if one.optimizer != other.optimizer and _take_turns(one, other):
            numbers = pairs.setdefault((one.optimizer, other.optimizer), (one, other, set()))[2]
            numbers.update(set(one.parameters) & set(other.parameters))
    for one, other, numbers in pairs.values():
        rows = [row for row in training.rows if row.tensor in numbers and row.statistics and row.statistics.filled]
        if rows:
            yield _sentence(training, one, other, rows)


def _take_turns(one: OptimizerGroup, other: OptimizerGroup) -> bool:
    return one.turns[0] < other.turns[1] and other.turns[0] < one.turns[1]


def _sentence(
    training: MeasuredTraining, one: OptimizerGroup, other: OptimizerGroup, rows: list[ParameterRow]
) -> StandingOut:
    label = training.facts.label
    names = f"`{one.name}` and `{other.name}`" if one.name != other.name else f"two `{one.name}` optimizers"
    return stands_out(
        f"{listed(rows)} {'is' if len(rows) == 1 else 'are'} in {names}, and both step",
        label("optimizer_made_here", other.site, "the second is made here"),
        label("optimizer_made_here", one.site, "the first is made here"),
    )
