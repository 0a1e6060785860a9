"""Finds lines that round trained parameters in place between their steps, while nothing keeps the exact values.

What a step changes by less than half the distance of two levels is lost then. Where a copy has the exact values, a line
puts them back before the step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.repeated_seeds import RANDOM
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_ROUNDING = frozenset("round floor ceil trunc fix fake_quantize_per_tensor_affine".split())
_BY_ELEMENT = frozenset("mul div clamp clamp_min clamp_max add sub clip".split())
_MIN_WRITES, _MIN_SHARE, _MOST_ABOVE = 5, 0.5, 60


@dataclass(frozen=True, slots=True)
class RoundedWrites:
    """A line that rounds parameters, and in how many of their steps."""

    write: Call
    rows: tuple[ParameterRow, ...]
    times: int
    steps: int


def rounded_writes(training: MeasuredTraining) -> Iterator[RoundedWrites]:
    """Yields these lines, if all lines that write to the parameters only round them."""
    lines: dict[int, list[tuple[ParameterRow, list[Call]]]] = defaultdict(list)
    for row in training.rows:
        if not row.is_stepped or row.group is None:
            continue
        writes = training.writes(row.tensor)
        rounding = [call for call in writes if _rounds(training, row, call)]
        kinds = (_is_rounding(training, row, call) for call in writes)
        if len(rounding) >= max(_MIN_WRITES, _MIN_SHARE * row.group.steps) and all(kinds):
            lines[rounding[-1].site].append((row, rounding))
    for found in lines.values():
        (row, calls), rows = found[0], tuple(row for row, _ in found)
        yield RoundedWrites(calls[-1], rows, len(calls), row.group.steps if row.group is not None else 0)


def _is_rounding(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a write gives a parameter a rounded value of its own, or scales it for that."""
    facts, shape = training.facts, training.facts.tensor(row.tensor).shape
    others = [access for access in call.inputs[1:] if facts.tensor(access.tensor).shape == shape]
    is_scaled = op_name(call) in _BY_ELEMENT and bool(call.writes) and not others
    return is_scaled or _rounds(training, row, call)


def _rounds(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    if call.writes and op_name(call) in _ROUNDING:
        return True
    is_set = (call.op == DATA_SET or op_name(call) == "copy") and len(call.inputs) == 2
    return is_set and _is_rounded(training, row, call)


def _is_rounded(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether the value that a call writes is computed by a rounding from the parameter alone."""
    facts, is_own = training.facts, False
    size, names = facts.tensor(row.tensor).shape, set[str]()
    waiting = [(call.inputs[1].tensor, call.index)]
    for number, before in islice(waiting, _MOST_ABOVE):
        if facts.storage_of(number, before - 1) == facts.storage_of(row.tensor, before - 1):
            is_own = True
            continue
        made = next(iter(facts.producers(number, before)), None)
        if made is None:
            if facts.tensor(number).shape == size:
                return False  # another copy
            continue
        names.add(op_name(made))
        waiting += [(access.tensor, made.index) for access in made.inputs]
    is_random = bool(names & RANDOM) or any("bernoulli" in name for name in names)
    return is_own and bool(names & _ROUNDING) and not is_random and len(waiting) <= _MOST_ABOVE
