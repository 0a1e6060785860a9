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
    shared: dict[tuple[int, ...], dict[int, OptimizerGroup]] = {}
    for one, other, numbers in pairs.values():
        holding = shared.setdefault(tuple(sorted(numbers)), {})
        holding.update({one.optimizer: one, other.optimizer: other})
    for tensors, holding in shared.items():
        rows = [row for row in training.rows if row.tensor in tensors and row.statistics and row.statistics.filled]
        if rows:
            yield _sentence(training, list(holding.values()), rows)


def _take_turns(one: OptimizerGroup, other: OptimizerGroup) -> bool:
    return one.turns[0] < other.turns[1] and other.turns[0] < one.turns[1]


def _sentence(training: MeasuredTraining, groups: list[OptimizerGroup], rows: list[ParameterRow]) -> StandingOut:
    label = training.facts.label
    one, other = groups[:2]
    if len(groups) > 2:
        kind = f"`{one.name}` " if len({group.name for group in groups}) == 1 else ""
        holders, both = f"{len(groups)} {kind}optimizers", "each of them steps"
    else:
        holders = f"`{one.name}` and `{other.name}`" if one.name != other.name else f"two `{one.name}` optimizers"
        both = "both step"
    return stands_out(
        f"{listed(rows)} {'is' if len(rows) == 1 else 'are'} in {holders}, and {both}",
        label("optimizer_made_here", other.site, "the second is made here"),
        label("optimizer_made_here", one.site, "the first is made here"),
    )
