"""Names parameters of half precision whose elements mostly keep their values, because updates are rounded away."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import elements
from tensorlens.analysis.training.parameters.own_updates import updates_in_half
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup, ParameterStatistics

_MIN_STEPS = 8
_MOST = 0.5  # of the elements
_Found = tuple[ParameterRow, ParameterStatistics, OptimizerGroup]
_Own = tuple[ParameterRow, ParameterStatistics, Call]


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, unless each of their elements is as it was: that is another sentence."""
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
        yield from _of_optimizer(training, found)
    yield from _of_lines(training)


def _of_optimizer(training: MeasuredTraining, found: list[_Found]) -> Iterator[StandingOut]:
    facts = training.facts
    share, rows = _kept(training, [(row, each) for row, each, _ in found])
    if share < _MOST:
        return
    steps = max(each.half_steps for _, each, _ in found)
    text = f"{share * 100:.0f} % of the elements of {listed(rows)} have the value that they had before the "
    text += f"first of {steps:,} steps in half precision, although the run gave them gradients: an update that is "
    yield stands_out(
        f"{text}too small for the dtype is rounded away",
        facts.label("optimizer_made_here", found[0][2].site, "made here"),
        facts.label("needed_here", rows[0].passes[-1] if rows[0].passes else None, "backward gives a gradient"),
    )


def _of_lines(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds such parameters that lines of the program update, without an optimizer."""
    facts, lines = training.facts, dict[int, list[_Own]]()
    for row in training.rows:
        is_half = row.statistics is not None and row.statistics.half_steps >= _MIN_STEPS
        if row.group is None and row.statistics is not None and is_half and row.requires_grad:
            calls = updates_in_half(training, row)
            if len(calls) >= _MIN_STEPS:
                lines.setdefault(calls[-1].site, []).append((row, row.statistics, calls[-1]))
    for found in lines.values():
        share, rows = _kept(training, [(row, each) for row, each, _ in found])
        if _MOST <= share < 1:  # if none changes, the rate is zero, perhaps
            passes = max(each.half_steps for _, each, _ in found)
            text = f"{share * 100:.0f} % of the elements of {listed(rows)} have the value that they had at the first "
            text += f"of {passes:,} backward passes in half precision, although {as_written(facts, found[0][2])} "
            yield stands_out(
                f"{text}updates them by their gradients: an update that is too small for the dtype is rounded away",
                facts.label("modified_here", found[0][2].site, "updated here", found[0][2].index),
                facts.label("needed_here", rows[0].passes[-1] if rows[0].passes else None, "backward gives a gradient"),
            )


def _kept(
    training: MeasuredTraining, found: list[tuple[ParameterRow, ParameterStatistics]]
) -> tuple[float, list[ParameterRow]]:
    """Returns the share of the elements that keep their values, and the rows with such elements, the most first."""
    total = sum(elements(training.facts.tensor(row.tensor).shape) for row, _ in found)
    found = sorted(found, key=lambda each: each[1].kept, reverse=True)
    return sum(each.kept for _, each in found) / max(total, 1), [row for row, each in found if each.kept]
