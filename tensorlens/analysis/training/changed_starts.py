"""Finds runs of a model, as those of an evaluation, that change in place the data that they begin with.

`state = data[:, 0]` makes a view, as does `state, *rest = data.unbind(1)`. `state += model(state)` in a loop writes
into the data, and the next evaluation begins where the last one ended. A moving average that is kept in a row of a
table changes once in each run.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.one_memory import elements, item_size
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Access, Call

_ADDING = frozenset("add iadd sub isub mul imul addcmul".split())
_TAKING = frozenset("getitem select narrow unbind split chunk tensor_split".split())
_SHAPING = frozenset("Tensor.data.__get__ Tensor.mT.__get__ Tensor.T.__get__".split()) | {
    f"Tensor.{name}" for name in "detach squeeze unsqueeze view reshape flatten transpose t permute movedim".split()
}
_WITH_NUMPY = frozenset("from_numpy as_tensor numpy asarray frombuffer".split())
_MIN_RUNS = 3
_MAX_CALLS = 400
_MAX_SHAPES = 4


@dataclass(frozen=True, slots=True)
class ChangedStart:
    """Data of which each run changes a part in place, by values that a trained model computes."""

    data: int
    view: Call  # of the last run
    change: Call
    runs: int


def changed_starts(training: Training) -> Iterator[ChangedStart]:
    """Yields this data, if nothing else writes to it and steps run between one view and the next."""
    facts, steps = training.facts, [step.index for step in training.steps]
    by_storage: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        for storage in {facts.storage_of(write.tensor, call.index) for write in call.writes} - {None}:
            by_storage[storage].append(call)  # type: ignore[index]
    hidden = {each.tensor for each in facts.trace.inspection.overwrites}
    hidden |= {access.tensor for call in facts.calls if op_name(call) in _WITH_NUMPY for access in _all(call)}
    unseen = {storage for number in hidden if number is not None for storage in facts.storages_of(number)}
    for storage, calls in by_storage.items():
        written = {call.writes[0].tensor: call for call in calls}  # each with its last change
        is_loop = all(n > 1 for n in Counter(call.writes[0].tensor for call in calls).values())
        if len(written) < _MIN_RUNS or storage in unseen or not is_loop or not _are_runs(training, calls):
            continue
        known = {number: view for number in written if (view := _view(facts, number)) is not None}
        views = [view for view, _ in known.values()]
        between = [bisect_left(steps, b.index) - bisect_left(steps, a.index) for a, b in pairwise(views)]
        size = facts.trace.storages[storage].nbytes
        parts = [facts.tensor(number) for number in written]
        is_part = all(elements(part.shape) * item_size(part.dtype) < size for part in parts)
        is_one = len({place for _, place in known.values()}) == 1
        if len(known) == len(written) and all(between) and is_part and is_one and _are_same_part(facts, views):
            number, last = next(reversed(known)), views[-1]
            yield ChangedStart(last.inputs[0].tensor, last, written[number], len(known))


def _view(facts: TraceIndex, number: int) -> tuple[Call, int] | None:
    """Returns the call that took a part of a tensor, and which of its results that is; also where other calls have
    given the part another shape."""
    for _ in range(_MAX_SHAPES):
        made = facts.creator(number)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _TAKING:
            return made, [access.tensor for access in made.outputs].index(number)
        source = made.inputs[0].tensor
        if made.op not in _SHAPING or facts.tensor(number).storage != facts.storage_of(source, made.index):
            return None
        number = source
    return None


def _all(call: Call) -> tuple[Access, ...]:
    return (*call.inputs, *call.outputs)


def _are_same_part(facts: TraceIndex, views: list[Call]) -> bool:
    """Returns whether one line takes the same elements each time: its indices are numbers and slices of numbers."""
    node = facts.node_at(views[0].site)
    if len({view.site for view in views}) > 1:
        return False
    if isinstance(node, ast.Subscript):
        given: list[ast.expr] = [node.slice]
    elif isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch"
        given = [*node.args[0 if is_method else 1 :], *(keyword.value for keyword in node.keywords)]
    else:
        return False
    return not any(isinstance(each, ast.Name | ast.Attribute | ast.Call) for part in given for each in ast.walk(part))


def _are_runs(training: Training, calls: list[Call]) -> bool:
    """Returns whether one line, while gradients are off, changes memory by values that are computed from what it
    changes and from trained parameters."""
    facts, last = training.facts, calls[-1]
    if len({call.site for call in calls}) != 1 or any(
        op_name(call) not in _ADDING or call.within or call.mode == "grad" for call in calls
    ):
        return False
    memory = facts.storage_of(last.writes[0].tensor, last.index)
    read, waiting = set[int](), [(last.inputs[-1].tensor, last.index)]
    for number, before in waiting:
        read.add(number)
        made = next(iter(facts.producers(number, before)), None) if number not in training.stepped else None
        if made is not None and len(waiting) < _MAX_CALLS:
            waiting += [(access.tensor, made.index) for access in made.inputs if access.tensor not in read]
    return bool(read & training.stepped) and any(facts.storage_of(number, last.index) == memory for number in read)
