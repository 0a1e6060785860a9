"""Names parameters of half precision whose elements mostly keep their values, because updates are rounded away."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import elements
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup, ParameterStatistics

_MIN_STEPS = 8
_MOST = 0.5  # of the elements
_Found = tuple[ParameterRow, ParameterStatistics, OptimizerGroup]


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, unless each of their elements is as it was: that is another sentence."""
    facts = training.facts
    groups: dict[int, list[_Found]] = {}
    for row in training.rows:
        is_same = row.movement is not None and not row.has_moved
        if row.group is None or row.statistics is None or is_same or row.group.rates[1] <= 0:
            continue
        if training.writes(row.tensor):
            continue  # a line may have brought the values back
        if row.statistics.half_steps >= _MIN_STEPS:
            holding = (group for group in training.groups if group.steps and row.tensor in group.parameters)
            last = max(holding, key=lambda group: group.turns[1])  # a cast stays, and earlier ones stepped before it
            groups.setdefault(last.optimizer, []).append((row, row.statistics, last))
    for found in groups.values():
        kept = sum(each.kept for _, each, _ in found)
        total = sum(elements(facts.tensor(row.tensor).shape) for row, _, _ in found)
        if kept < _MOST * total:
            continue
        steps = max(each.half_steps for _, each, _ in found)
        found.sort(key=lambda each: each[1].kept, reverse=True)
        rows = [row for row, each, _ in found if each.kept]
        text = f"{kept / total * 100:.0f} % of the elements of {listed(rows)} have the value that they had before the "
        text += f"first of {steps:,} steps in half precision, although the run gave them gradients: an update that is "
        yield stands_out(
            f"{text}too small for the dtype is rounded away",
            facts.label("optimizer_made_here", found[0][2].site, "made here"),
            facts.label("needed_here", rows[0].passes[-1] if rows[0].passes else None, "backward gives a gradient"),
        )
