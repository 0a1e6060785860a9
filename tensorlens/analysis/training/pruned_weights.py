"""Finds parameters that a mask sets to zero in part, and that later steps change again without the mask."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Call

_COMPARISONS = frozenset("gt lt ge le ne eq greater less greater_equal less_equal logical_and logical_or".split())
_CASTS = frozenset("float to type bool int double half logical_not invert and or type_as view_as reshape".split())
_MIN_STEPS = 3
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class PrunedWeights:
    """A line that multiplies parameters by a mask in place, and the steps that change them afterwards."""

    write: Call  # the last that multiplies the parameter by a mask
    rows: tuple[ParameterRow, ...]
    steps: int


def pruned_weights(training: MeasuredTraining) -> Iterator[PrunedWeights]:
    """Yields these lines, each once. A mask that anything reads afterwards may be applied again, in a forward pass or
    to the gradients, for example."""
    facts = training.facts
    found: dict[int, list[tuple[Call, ParameterRow, int]]] = {}
    for row in training.rows:
        if not row.is_stepped or row.statistics is None or row.statistics.filled == row.statistics.zero:
            continue
        writes = [call for call in training.writes(row.tensor) if op_name(call) in ("mul", "imul")]
        last = writes[-1] if writes else None
        if last is None or len(last.inputs) != 2 or not _is_mask(facts, last):
            continue
        moving = [
            step.index
            for step in training.training.steps
            if any(n == row.tensor and g is not None for n, g in zip(step.parameters, step.gradients, strict=True))
        ]
        later = len(moving) - bisect_right(moving, last.index)
        if later >= _MIN_STEPS and not _is_read_later(facts, last):
            found.setdefault(last.site, []).append((last, row, later))
    for group in found.values():
        yield PrunedWeights(group[0][0], tuple(row for _, row, _ in group), min(steps for *_, steps in group))


def _is_mask(facts: TraceIndex, write: Call) -> bool:
    """Returns whether a parameter is multiplied by the result of a comparison."""
    waiting = [(write.inputs[1].tensor, write.index, 0)]
    for number, before, depth in waiting:
        if facts.tensor(number).dtype == "bool":
            return True
        made = next(iter(facts.producers(number, before)), None)
        if made is None or depth > _MAX_DEPTH:
            continue
        if op_name(made) in _COMPARISONS:
            return True
        if op_name(made) in _CASTS and made.inputs:
            waiting.append((made.inputs[0].tensor, made.index, depth + 1))
    return False


def _is_read_later(facts: TraceIndex, write: Call) -> bool:
    mask = write.inputs[1].tensor
    return any(call.index > write.index and any(a.tensor == mask for a in call.inputs) for call in facts.calls)
