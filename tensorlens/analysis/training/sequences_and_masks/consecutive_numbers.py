"""Finds out whether numbers in a row follow one another in time, as those of one record do.

A record of several machines in turn, or the hours of days, are to be cut item by item. So one of two things must
show that the numbers are of one record: a range of times that they are computed from, with a reshape whose size is
named as a batch, or a recurrent layer that runs along the same numbers one by one elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Call

_TIMES = frozenset("arange linspace cumsum".split())
_IN_TURN = frozenset(
    "floor_divide floordiv rfloordiv remainder mod rmod fmod repeat_interleave repeat tile flip".split()
)
_VIEWING = frozenset("getitem unsqueeze view reshape contiguous narrow clone to float".split())
_BATCH = frozenset("batch batches bsz bs stream streams parallel".split())
_MAX_VIEWS = 8
_MAX_CALLS = 60
_MAX_RUNS = 4


def is_one_record(facts: TraceIndex, cut: Call, layer: Call) -> bool:
    """Returns whether a reshape cuts the numbers of one record, whose rows a recurrent layer runs along."""
    numbers = cut.inputs[0].tensor
    starts = set(_starts(facts, numbers, cut.index))
    if not starts:
        return False
    node = facts.node_at(cut.site)
    names = (getattr(each, "id", getattr(each, "attr", "")) for part in _arguments(node) for each in ast.walk(part))
    is_batch = any(set(words_of(name)) & _BATCH for name in names)
    if is_batch and any(isinstance(start, tuple) for start in starts):
        return True
    runs = (run for run, number in _single_runs(facts, layer) if starts & set(_starts(facts, number, run.index)))
    return any(not _is_trained(facts, run) for run in islice(runs, _MAX_RUNS))


def _is_trained(facts: TraceIndex, run: Call) -> bool:
    """Returns whether a loss contains a run of a layer: one may train it along all numbers and along every 4th one."""
    backward = next((each for each in facts.backwards if each.index > run.index), None)
    if backward is None or run.nodes[1] == run.nodes[0]:
        return False
    return any(call.index == run.index for call in recorded_above(facts, backward))


def _arguments(node: ast.AST | None) -> list[ast.expr]:
    return node.args if isinstance(node, ast.Call) else []


def _starts(facts: TraceIndex, numbers: int, before: int) -> Iterator[int | tuple[str, int]]:
    """Yields the tensors with one number after the other that numbers are taken from, and the lines that make ranges of
    times for them; none where an item may be at another place."""
    found, place = list[int | tuple[str, int]](), numbers
    for _, made in islice(ancestry(facts, numbers, before), _MAX_CALLS):
        sizes = [facts.tensor(access.tensor).shape for access in (*made.inputs, *made.outputs)]
        if (
            op_name(made) in _IN_TURN
            or _steps(facts, made)
            or any(sum(size > 1 for size in shape) > 1 for shape in sizes)
        ):
            return
        span = facts.span(made.site)
        if op_name(made) in _TIMES and span is not None:
            found.append((span.file, span.line))
    for _ in range(_MAX_VIEWS):
        found.append(place)
        made_of = next(iter(facts.producers(place, before)), None)
        if made_of is None or op_name(made_of) not in _VIEWING or len(made_of.inputs) != 1:
            break
        place = made_of.inputs[0].tensor
    yield from found


def _steps(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call takes items that do not follow one another, as `x[::24]` does."""
    node = facts.node_at(made.site)
    if op_name(made) != "getitem" or not isinstance(node, ast.Subscript):
        return op_name(made) == "getitem"
    return len(made.inputs) > 1 or any(isinstance(each, ast.Slice) and each.step for each in ast.walk(node.slice))


def _single_runs(facts: TraceIndex, layer: Call) -> Iterator[tuple[Call, int]]:
    """Yields other runs of a layer along one sequence, and the numbers of this one."""
    weights = {access.tensor for access in layer.inputs if facts.tensor(access.tensor).type == "Parameter"}
    for call in facts.calls:
        if call.op != layer.op or not weights or not weights <= {access.tensor for access in call.inputs}:
            continue
        shape = facts.tensor(call.inputs[0].tensor).shape
        if shape[0] > 1 and (len(shape) == 2 or shape[1] == 1) and shape[-1] == 1:
            yield call, call.inputs[0].tensor
