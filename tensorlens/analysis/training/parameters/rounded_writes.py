"""Finds lines that round trained parameters in place between their steps, while nothing keeps the exact values.

What a step changes by less than half the distance of two levels is lost then. Where a copy has the exact values, a line
puts them back before the step. Steps of whole levels, as the signs of gradients for whole numbers, are meant so.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.repeated_seeds import RANDOM
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_ROUNDING = frozenset("round floor ceil trunc fix fake_quantize_per_tensor_affine".split())
_BY_ELEMENT = frozenset("mul div clamp clamp_min clamp_max add sub clip".split())
_MIXING = frozenset(
    "where masked_fill masked_scatter lerp index_put scatter cat stack hstack vstack concatenate pad".split()
)
_SCALING = frozenset("mul div rmul truediv rtruediv fake_quantize_per_tensor_affine".split())
_SIGNS = frozenset(("sign", "sgn"))
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
    if any(op_name(call) in _SIGNS for call in training.facts.calls):
        return
    lines: dict[int, list[tuple[ParameterRow, list[Call]]]] = defaultdict(list)
    for row in training.rows:
        if not row.is_stepped or row.group is None:
            continue
        writes = training.writes(row.tensor)
        rounding = [call for call in writes if _rounds(training, row, call)]
        kinds = (_is_rounding(training, row, call) for call in writes)
        if (
            len(rounding) >= max(_MIN_WRITES, _MIN_SHARE * row.group.steps)
            and all(kinds)
            and _is_scaled(training, writes)
        ):
            lines[rounding[-1].site].append((row, rounding))
    for found in lines.values():
        (row, calls), rows = found[0], tuple(row for row, _ in found)
        yield RoundedWrites(calls[-1], rows, len(calls), row.group.steps if row.group is not None else 0)


def _is_scaled(training: MeasuredTraining, writes: Sequence[Call]) -> bool:
    """Returns whether the levels are others than the whole numbers."""
    facts = training.facts
    for call in writes:
        node = facts.node_at(call.site)
        words = [word.arg for word in node.keywords] if isinstance(node, ast.Call) else []
        if op_name(call) in _SCALING or "decimals" in words:
            return True
        if len(call.inputs) == 2:
            above = ancestry(facts, call.inputs[1].tensor, call.index, _MOST_ABOVE)
            if any(op_name(made) in _SCALING for _, made in above):
                return True
    return False


def _is_rounding(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a write gives a parameter a rounded value of its own, or scales it for that."""
    if not _is_whole(training, row, call):
        return False  # a part may be frozen
    others = [access for access in call.inputs[1:] if training.facts.tensor(access.tensor).shape]
    is_scaled = op_name(call) in _BY_ELEMENT and bool(call.writes) and not others
    return is_scaled or _rounds(training, row, call)


def _is_whole(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a call writes all elements of a parameter."""
    written = {write.tensor for write in call.writes} or {access.tensor for access in call.inputs[:1]}
    size = training.facts.tensor(row.tensor).shape
    return all(training.facts.tensor(number).shape == size for number in written)


def _rounds(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    if not _is_whole(training, row, call):
        return False
    if call.writes and op_name(call) in _ROUNDING:
        return True
    is_set = (call.op == DATA_SET or op_name(call) == "copy") and len(call.inputs) == 2
    return is_set and _is_rounded(training, row, call)


def _is_rounded(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether the value that a call writes is computed by a rounding from the parameter alone."""
    facts, is_own = training.facts, False
    size, names = facts.tensor(row.tensor).shape, set[str]()
    waiting = [(call.inputs[1].tensor, call.index, False)]
    for number, before, is_rounded in islice(waiting, _MOST_ABOVE):
        shape = facts.tensor(number).shape
        if facts.storage_of(number, before - 1) == facts.storage_of(row.tensor, before - 1):
            if not is_rounded:
                return False  # some of the values, or a share of them, stay exact
            is_own = True
            continue
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            if shape:
                return False  # another copy, or other numbers
            continue
        names.add(op_name(made))
        is_changed = is_rounded or op_name(made) in _ROUNDING or shape != size
        waiting += [(access.tensor, made.index, is_changed) for access in made.inputs]
    is_random = bool(names & RANDOM) or any("bernoulli" in name for name in names)
    is_known = not is_random and names.isdisjoint(_MIXING) and len(waiting) <= _MOST_ABOVE
    return is_own and bool(names & _ROUNDING) and is_known
