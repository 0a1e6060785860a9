"""Collects single answers into rows, and decides whether the operands differ in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorlens.compare.comparison_records import Answer, Observation, Row, Value
from tensorlens.compare.probe.measured_text import close, duration
from tensorlens.compare.probe_process import Cell

if TYPE_CHECKING:
    from tensorlens.compare.probe.probes import Probe

ROUNDED = " (up to rounding)"
NOTICEABLE = 1.25  # costs whose ratio is smaller count as equal


def rows_of(
    probes: Sequence[Probe], operands: int, cells: Mapping[Cell, Answer | None], crashed: Mapping[int, str]
) -> tuple[Row, ...]:
    """Returns one row for each probe that applied to some operand."""
    rows = []
    for probe in probes:
        evidence = [
            Observation(operand, place, answer)
            for (operand, place, name), answer in sorted(cells.items())
            if name == probe.name and answer is not None
        ]
        if probe.name == "runs":
            evidence += [Observation(operand, 0, Answer(False, "no", reason)) for operand, reason in crashed.items()]
        if not evidence:
            continue
        if probe.name == "values":
            evidence = _same_numbers(evidence)
        if probe.name == "time_ratio":
            differs, evidence = _times_differ(evidence), _ratios(evidence)
        else:
            differs = _costs_differ(evidence) if probe.group == "cost" else _differs(evidence)
        main: dict[int, Value] = {each.operand: each.answer.value for each in evidence if each.input == 0}
        values = tuple(main.get(operand) for operand in range(operands))
        rows.append(Row(probe.name, probe.label, probe.group, probe.level, values, differs, tuple(evidence)))
    return tuple(rows)


def _differs(evidence: Sequence[Observation]) -> bool:
    """Returns whether two operands give different answers on the same input."""
    first: dict[int, Value] = {}
    return any(first.setdefault(each.input, each.answer.value) != each.answer.value for each in evidence)


def _same_numbers(evidence: Sequence[Observation]) -> list[Observation]:
    """Gives one value to all answers that differ only by rounding, so that they count as equal."""
    unified: list[Observation] = []
    for each in evidence:
        same = next((other for other in unified if close(other.answer.value, each.answer.value)), each)
        text = same.answer.text
        if same.answer.value != each.answer.value and not text.endswith(ROUNDED):
            text += ROUNDED
        unified.append(Observation(each.operand, each.input, Answer(same.answer.value, text, each.answer.error)))
    return unified


def _costs_differ(evidence: Sequence[Observation]) -> bool:
    costs = [each.answer.value for each in evidence if isinstance(each.answer.value, (int, float))]
    return bool(costs) and max(costs) > NOTICEABLE * min(costs)


def _times(evidence: Sequence[Observation]) -> dict[int, tuple[int, int, int]]:
    """Returns operand -> (first quartile, median, third quartile) of the nanoseconds per call."""
    times = {}
    for each in evidence:
        if isinstance(each.answer.value, int):
            low, middle, high = map(int, each.answer.text.split())
            times[each.operand] = low, middle, high
    return times


def _times_differ(evidence: Sequence[Observation]) -> bool:
    """Returns whether most calls of one operand took noticeably longer than most calls of another."""
    times = _times(evidence).values()
    if not times:
        return False
    fastest, slowest = min(times, key=lambda each: each[1]), max(times, key=lambda each: each[1])
    return slowest[0] > fastest[2] and slowest[1] > NOTICEABLE * fastest[1]


def _ratios(evidence: Sequence[Observation]) -> list[Observation]:
    """Expresses times as multiples of the fastest operand's median, with the range of the middle half of the calls."""
    times = _times(evidence)
    fastest = max(1, min((middle for _, middle, _ in times.values()), default=1))
    ratios = []
    for each in evidence:
        if each.operand not in times:
            ratios.append(each)
            continue
        low, middle, high = times[each.operand]
        ratio = round(middle / fastest, 2)
        spread = f"({low / fastest:.3g} to {high / fastest:.3g})"
        text = f"{duration(middle)}, {f'{ratio:.3g} times' if middle > fastest else 'fastest'} {spread}"
        ratios.append(Observation(each.operand, each.input, Answer(ratio, text)))
    return ratios
