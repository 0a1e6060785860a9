"""Finds calls that take the step after the last one of padded sequences, as a run has measured.

The trace has the lengths: the sizes of the sequences that `pad_sequence()`, or a line for each of them, has padded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line
from tensorlens.analysis.training.pair_tables import JOINS, made_by, shape_of
from tensorlens.analysis.training.sequences_and_masks.step_shifts import may_shift
from tensorlens.records.graph_values import PickedSteps
from tensorlens.records.model import Call

_SHIFTS = JOINS | frozenset("roll pad constant_pad_nd".split())
_LEAST_LOOKS, _LEAST_SHORTER, _MOST_CALLS = 2, 2, 400


@dataclass(frozen=True, slots=True)
class StepAfterLast:
    """A call that takes one step of each row, and how many steps there are."""

    taken: Call
    steps: int


def steps_after_last(facts: TraceIndex) -> Iterator[StepAfterLast]:
    """Yields these, one for each line, where all passes that were looked at take the step after the last one."""
    for line in by_line(facts, facts.trace.inspection.picked_steps):
        if len(line) >= _LEAST_LOOKS and all(_is_after_last(facts, *each) for each in line):
            yield StepAfterLast(line[0][0], line[0][1].size)


def _is_after_last(facts: TraceIndex, taken: Call, fact: PickedSteps) -> bool:
    if _is_found(facts, taken):
        return False
    above = [call for _, call in islice(ancestry(facts, taken.inputs[0].tensor, taken.index), _MOST_CALLS)]
    padded = [*_lengths(facts, above, len(fact.steps)), (fact.lengths, -1)]
    for lengths, since in padded:
        ends = tuple(min(length, fact.size - 1) for length in lengths)
        shorter = sum(length < fact.size for length in lengths)
        if ends == fact.steps and shorter >= _LEAST_SHORTER and max(lengths) == fact.size:
            shape = {len(fact.steps), fact.size}
            moves = any(may_shift(facts, call, len(fact.steps), fact.size) for call in above if call.index > since)
            shifts = [call for call in above if call.index > since and op_name(call) in _SHIFTS and call.outputs]
            return not moves and not any(shape <= set(shape_of(facts, call.outputs[0].tensor)[:2]) for call in shifts)
    return False


def _is_found(facts: TraceIndex, taken: Call) -> bool:
    """Returns whether a call takes the places of something that is searched: an end of the text may be meant."""
    for access in taken.inputs[1:]:
        above = [call for _, call in islice(ancestry(facts, access.tensor, taken.index), _MOST_CALLS)]
        nodes = [node for each in above if (node := facts.node_at(each.site)) is not None]
        called = {last_name(node.func) for one in nodes for node in ast.walk(one) if isinstance(node, ast.Call)}
        if "index" in called or any(_searches(call) for call in above):
            return True
    return False


def _searches(call: Call) -> bool:
    return op_name(call) == "argmax" or (op_name(call) in ("eq", "__eq__") and len(call.inputs) == 1)


def _lengths(facts: TraceIndex, above: list[Call], rows: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yields the lengths of sequences that a call has padded, and when: of rows of numbers, as what fills rows of ids
    may be a token."""
    filled: dict[int, list[Call]] = {}
    for call in above:
        given = [shape_of(facts, access.tensor) for access in call.inputs]
        if op_name(call) == "pad_sequence" and len(given) == rows and all(len(each) > 1 for each in given):
            yield tuple(each[0] for each in given), call.index
        elif op_name(call) == "stack" and len(given) == rows:
            pads = [made_by(facts, access.tensor, call.index) for access in call.inputs]
            sizes = [shape_of(facts, made.inputs[0].tensor) for made in pads if made is not None and made.inputs]
            sizes = [each for each in sizes if len(each) > 1]
            if any(made is not None and op_name(made) in ("pad", "cat") for made in pads) and len(sizes) == rows:
                yield tuple(each[0] for each in sizes), call.index
        elif op_name(call) == "setitem" and len(call.inputs) == 2:
            filled.setdefault(call.site, []).append(call)
    for calls in filled.values():
        parts = [shape_of(facts, call.inputs[1].tensor) for call in sorted(calls, key=lambda call: call.index)]
        if len(parts) == rows and all(len(part) > 1 for part in parts):
            yield tuple(part[0] for part in parts), max(call.index for call in calls)
