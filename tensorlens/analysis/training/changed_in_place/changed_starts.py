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
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Access, Call

_ADDING = frozenset("add iadd sub isub mul imul addcmul".split())
_TAKING = frozenset("getitem select narrow unbind split chunk tensor_split".split())
_SHAPING = frozenset("Tensor.data.__get__ Tensor.mT.__get__ Tensor.T.__get__".split()) | {
    f"Tensor.{name}" for name in "detach squeeze unsqueeze view reshape flatten transpose t permute movedim".split()
}
_WITH_NUMPY = frozenset("from_numpy as_tensor numpy asarray frombuffer".split())
_MIN_RUNS = 3
_MAX_CALLS = 400
_MAX_HOPS = 8
_MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class ChangedStart:
    """Data of which each run changes a part in place, by values that a trained model computes."""

    data: int
    view: Call  # of the last run
    change: Call
    runs: int


def changed_starts(training: Training) -> Iterator[ChangedStart]:
    """Yields this data, if nothing else writes to it and steps run between one view and the next."""
    facts = training.facts
    by_storage: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        for storage in {facts.storage_of(write.tensor, call.index) for write in call.writes} - {None}:
            by_storage[storage].append(call)  # type: ignore[index]
    hidden = {each.tensor for each in facts.trace.inspection.overwrites}
    hidden |= {access.tensor for call in facts.calls if op_name(call) in _WITH_NUMPY for access in _all(call)}
    unseen = {storage for number in hidden if number is not None for storage in facts.storages_of(number)}
    for storage, writes in by_storage.items():
        written = {access.tensor for call in writes if op_name(call) in _ADDING for access in call.writes}
        calls = [call for call in writes if not _is_own_item(call, written)]
        if storage not in unseen and len(calls) > _MIN_RUNS and _are_runs(training, calls):
            yield from _changed(training, storage, calls)


def _changed(training: Training, storage: int, calls: list[Call]) -> Iterator[ChangedStart]:
    """Yields the data of these changes of one memory, if they are of the same parts of it in each run."""
    facts, steps = training.facts, [step.index for step in training.steps]
    size = facts.trace.storages[storage].nbytes
    hops: list[list[_Hop]] = []
    for call in calls:
        part = facts.tensor(call.writes[0].tensor)
        hops.append(_hops(facts, call.writes[0].tensor))
        if not hops[-1] or elements(part.shape) * item_size(part.dtype) >= size:
            return
    while all(hops) and len({chain[-1].made.index for chain in hops}) == 1:  # a view that all of them are of
        for chain in hops:
            chain.pop()
    if not all(hops):
        return
    runs: dict[int, list[tuple[int, tuple[tuple[int, int], ...]]]] = defaultdict(list)
    views = {chain[-1].made.index: chain[-1].made for chain in hops}
    spans: dict[int, int] = {}  # the last change of each run, by its view
    for call, chain in zip(calls, hops, strict=True):
        runs[chain[-1].made.index].append((call.site, tuple((hop.made.site, hop.place) for hop in chain)))
        spans[chain[-1].made.index] = call.index
    is_loop = all(n > 1 for changes in runs.values() for n in Counter(changes).values())
    is_same = len({frozenset(changes) for changes in runs.values()}) == 1
    between = [bisect_left(steps, other) - bisect_left(steps, one) for one, other in pairwise(sorted(views))]
    is_whole = all(bisect_left(steps, begin) == bisect_left(steps, end) for begin, end in spans.items())
    is_fixed = all(_is_fixed(facts, site) for site in {hop.made.site for chain in hops for hop in chain})
    if len(runs) >= _MIN_RUNS and is_loop and is_same and is_fixed and all(between) and is_whole:
        last = views[max(views)]
        changes = [call for call, chain in zip(calls, hops, strict=True) if chain[-1].made is last]
        yield ChangedStart(last.inputs[0].tensor, last, changes[0], len(runs))


@dataclass(frozen=True, slots=True)
class _Hop:
    """A call that takes a part of a tensor, and which of its results that is."""

    made: Call
    place: int


def _hops(facts: TraceIndex, number: int) -> list[_Hop]:
    """Lists the calls that took a part of a part of a tensor, the last first; others may have given these another
    shape."""
    hops: list[_Hop] = []
    for _ in range(_MAX_HOPS):
        made = facts.creator(number)
        if made is None or not made.inputs or not (op_name(made) in _TAKING or made.op in _SHAPING):
            break
        source = made.inputs[0].tensor
        if facts.tensor(number).storage != facts.storage_of(source, made.index):
            break
        if op_name(made) in _TAKING:
            hops.append(_Hop(made, [access.tensor for access in made.outputs].index(number)))
        number = source
    return hops


def _is_own_item(call: Call, written: set[int]) -> bool:
    """Returns whether a call ends `state[:, 2:] += change`: it assigns to a part what is in that memory already."""
    return op_name(call) == "setitem" and len(call.inputs) == 2 and call.inputs[1].tensor in written


def _all(call: Call) -> tuple[Access, ...]:
    return (*call.inputs, *call.outputs)


def _is_fixed(facts: TraceIndex, site: int) -> bool:
    """Returns whether a line takes the same elements each time: its indices are numbers and slices of numbers."""
    node = facts.node_at(site)
    if isinstance(node, ast.Subscript):
        given: list[ast.expr] = [node.slice]
    elif isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch"
        given = [*node.args[0 if is_method else 1 :], *(keyword.value for keyword in node.keywords)]
    else:
        return False
    parts = (each for part in given for each in ast.walk(part) if isinstance(each, ast.Name | ast.Attribute | ast.Call))
    return all(not isinstance(each, ast.Call) and written_number(facts, each) is not None for each in parts)


def _are_runs(training: Training, calls: list[Call]) -> bool:
    """Returns whether lines, while gradients are off, change memory by values that are computed from what they change
    and from trained parameters."""
    if any(op_name(call) not in _ADDING or call.within or call.mode == "grad" for call in calls):
        return False
    last = {call.site: call for call in calls}
    return len(last) <= _MAX_LINES and all(_is_run(training, call, calls[0]) for call in last.values())


def _is_run(training: Training, last: Call, first: Call) -> bool:
    """Returns whether a change is computed so. Chains of samples, which add a draw in each round, go on on purpose."""
    facts = training.facts
    memory = facts.storage_of(last.writes[0].tensor, last.index)
    read, waiting = set[int](), [(last.inputs[-1].tensor, last.index)]
    for number, before in waiting:
        read.add(number)
        made = next(iter(facts.producers(number, before)), None) if number not in training.stepped else None
        if made is not None and op_name(made) in DRAWS and made.index > first.index:
            return False
        if made is not None and len(waiting) < _MAX_CALLS:
            waiting += [(access.tensor, made.index) for access in made.inputs if access.tensor not in read]
    return bool(read & training.stepped) and any(facts.storage_of(number, last.index) == memory for number in read)
