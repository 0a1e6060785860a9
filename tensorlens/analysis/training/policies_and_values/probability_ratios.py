"""Finds clipped ratios of probabilities, as in PPO, whose old probabilities have a graph or are the present ones."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from tensorlens.analysis.lineage import MAX_CALLS, ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above, recorded_from
from tensorlens.analysis.training.one_memory import origin
from tensorlens.analysis.training.policies_and_values.advantages import is_score
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.training.value_ranges import SHAPING
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Access, Call

_CLIPS = frozenset(("clamp", "clip", "clamp_min", "clamp_max"))
_RANDOM = frozenset("dropout batch_norm feature_dropout alpha_dropout".split())
_DRAWING = frozenset("multinomial bernoulli normal randn rand randint rand_like randn_like rsample sample".split())
_ARRAYS = ("Tensor.numpy", "torch.from_numpy", "torch.as_tensor", "torch.asarray")
_SCALING = frozenset("mul rmul div truediv pow".split())
_OLD = re.compile("old|prev|ref|behav|rollout|buffer|stor|memory|collect|sampl|before|last")
_MIN_PASSES = 4
_MAX_RATIOS = 64  # of one line that are looked at for old probabilities that are computed again
Kind = Literal["graph", "present", "again"]


@dataclass(frozen=True, slots=True)
class OddRatio:
    """A ratio `exp(new - old)` that a loss clips.

    "graph": the old log-probabilities lead to the parameters of the new ones. "present": in each pass they are computed
    from the same parameters, at the same lines or by an alias of them, after the latest step. "again": they are
    computed of the same values as before, by parameters that steps have changed since then.
    """

    kind: Kind
    ratio: Call  # of the last such pass
    old: int
    made: Call  # that computed the old log-probabilities
    alias: Call | None  # that made what the old ones use in place of the parameters, without a copy
    passes: int


@dataclass(frozen=True, slots=True)
class _Found:
    kind: Kind | None
    ratio: Call
    old: int
    made: Call
    alias: Call | None = None


def odd_ratios(training: Training) -> Iterator[OddRatio]:
    """Yields these ratios, one for each line."""
    facts = training.facts
    lines: dict[int, list[_Found]] = defaultdict(list)
    for backward in examined_passes(facts):
        calls = recorded_above(facts, backward)
        clipped = {access.tensor for call in calls if op_name(call) in _CLIPS for access in call.inputs[:1]}
        for call in calls:
            if op_name(call) == "exp" and call.outputs and call.outputs[0].tensor in clipped:
                found = _found(training, call)
                if found is not None:
                    lines[call.site].append(found)
    for found_there in lines.values():
        last = found_there[-1]
        is_same = all(each.kind == last.kind for each in found_there)
        if last.kind == "graph" or (last.kind == "present" and is_same and len(found_there) >= _MIN_PASSES):
            yield OddRatio(last.kind, last.ratio, last.old, last.made, last.alias, len(found_there))
        elif last.kind is None and (times := _times_again(training, last)) > 1:
            yield OddRatio("again", last.ratio, last.old, _computed(facts, last), None, times)


def _times_again(training: Training, found: _Found) -> int:
    """Returns how often the old probabilities are computed of the same values, with steps in between."""
    facts, steps = training.facts, [step.index for step in training.steps]
    times: dict[frozenset[Access], dict[int, None]] = defaultdict(dict)
    on_arrays = {a.tensor for call in facts.calls if call.op in _ARRAYS for a in (*call.inputs, *call.outputs)}
    ratios = (call for call in facts.calls if call.site == found.ratio.site and call.op == found.ratio.op)
    for ratio in islice(ratios, _MAX_RATIOS):
        difference = next(iter(facts.producers(ratio.inputs[0].tensor, ratio.index)), None)
        if difference is None or len(difference.inputs) != 2:
            continue
        new, old = (access.tensor for access in difference.inputs)
        first = {origin(facts, leaf): leaf for leaf in graph_leaves(facts, new, difference.index)}
        layers = _layers(facts, old, difference.index, first)
        if layers and not graph_leaves(facts, old, difference.index):
            made_after = bisect_left(steps, max(call.index for call in layers))
            since = steps[made_after - 1] if made_after else 0
            above = (call for _, call in ancestry(facts, old, difference.index) if call.index > since)
            calls = [call for call in above if not call.writes and not call.within]
            given = _given(facts, calls, since, first)
            is_drawn = any(op_name(call) in _RANDOM | _DRAWING for call in calls)
            if given and not is_drawn and not any(access.tensor in on_arrays for access in given):
                times[given][made_after] = None
    return max(map(len, times.values()), default=0)


def _given(facts: TraceIndex, calls: list[Call], since: int, first: dict[int, int]) -> frozenset[Access]:
    """Returns what some calls were given that was made before: neither parameters nor what the calls have made."""
    made = {access.tensor for call in calls for access in call.outputs}
    inputs = {access for call in calls for access in call.inputs if access.tensor not in made}
    return frozenset(access for access in inputs if origin(facts, access.tensor) not in first)


def _computed(facts: TraceIndex, found: _Found) -> Call:
    """Returns the call that made the old probabilities, from which others may have taken a part."""
    call = found.made
    while op_name(call) in SHAPING and call.inputs:
        made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
        if made is None:
            break
        call = made
    return call


def _found(training: Training, ratio: Call) -> _Found | None:
    facts = training.facts
    difference = next(iter(facts.producers(ratio.inputs[0].tensor, ratio.index)), None)
    if difference is None or op_name(difference) != "sub" or len(difference.inputs) != 2:
        return None
    new, old = (access.tensor for access in difference.inputs)
    made = next(iter(facts.producers(old, difference.index)), None)
    leaves = graph_leaves(facts, new, difference.index)
    if made is None or not leaves or not is_score(facts, new, difference.index):
        return None
    old_leaves = graph_leaves(facts, old, difference.index)
    if old_leaves & leaves and (old_leaves != leaves or op_name(made) == "cross_entropy"):
        return None
    step = max((each.index for each in training.steps if each.index < ratio.index), default=0)
    first = {origin(facts, leaf): leaf for leaf in leaves}
    of_old = _layers(facts, old, difference.index, first)
    of_new = _layers(facts, new, difference.index, first)
    own_old = [call for call in of_old if call not in of_new]  # both are computed from the actions
    own_new = [call for call in of_new if call not in of_old]
    if old_leaves:
        is_old = own_new and not _is_other_input(facts, difference, step, first)
        return _Found("graph", ratio, old, made) if is_old else None
    is_present = bool(own_old) and all(call.index > step for call in own_old)
    is_present = is_present and _is_one_path(facts, (old, new), difference.index, first)
    alias = _alias(facts, own_old, first) if is_present else None
    is_present = is_present and _is_same(facts, own_old, own_new, first, alias)
    return _Found("present" if is_present else None, ratio, old, made, alias)


def _is_other_input(facts: TraceIndex, difference: Call, step: int, first: dict[int, int]) -> bool:
    """Returns whether both sides are values of the present parameters, for inputs of which none is taken from another,
    and no name of the source says that one of them is older: so a loss compares the scores of two answers."""
    node = facts.node_at(difference.site)
    if node is not None and _OLD.search(ast.unparse(node).lower()):
        return False
    given, above = [], []
    for access in difference.inputs:
        calls = recorded_from(facts, [(access.tensor, difference.index)])
        layers = [call for call in calls if _parameters(facts, call, first) and not _is_alias(facts, call, first)]
        if any(call.index < step for call in layers):
            return False
        inputs = [(each.tensor, call.index) for call in layers for each in call.inputs]
        inputs = [(number, before) for number, before in inputs if origin(facts, number) not in first]
        made = (call for number, before in inputs for _, call in ancestry(facts, number, before))
        given.append({origin(facts, number) for number, _ in inputs})
        above.append({origin(facts, each.tensor) for call in made for each in call.inputs})
    return given[0].isdisjoint(given[1] | above[1]) and given[1].isdisjoint(above[0])


def _is_one_path(facts: TraceIndex, results: tuple[int, int], before: int, first: dict[int, int]) -> bool:
    """Returns whether two results are computed by equal operations, of the same inputs, that no number of the script
    and no dropout or batch norm may make different."""
    calls = [list(_path(facts, number, before, first)) for number in results]
    shared = {call.index for call in calls[0]} & {call.index for call in calls[1]}
    own = [[call for call in each if call.index not in shared and not _is_alias(facts, call, first)] for each in calls]
    if any(op_name(call) in _RANDOM or _is_scaled_by_name(facts, call) for each in own for call in each):
        return False
    made = [{access.tensor for call in each for access in call.outputs} for each in own]
    given = [
        {access.tensor for call in each for access in call.inputs if origin(facts, access.tensor) not in first}
        - outputs
        for each, outputs in zip(own, made, strict=True)
    ]
    ops = [sorted(call.op for call in each if call.inputs and "detach" not in call.op) for each in own]
    return ops[0] == ops[1] and given[0] == given[1]


def _path(facts: TraceIndex, number: int, before: int, first: dict[int, int]) -> Iterator[Call]:
    """Yields the calls that a result was computed by, not those that changed the parameters."""
    waiting, seen = [(number, before)], set[int]()
    for each, limit in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS:
            continue
        seen.add(call.index)
        yield call
        inputs = (access.tensor for access in call.inputs)
        waiting += [(each, call.index) for each in inputs if origin(facts, each) not in first]


def _is_scaled_by_name(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the source multiplies or divides by a name whose value is not recorded, as a temperature."""
    node = facts.node_at(call.site)
    if len(call.inputs) != 1 or op_name(call) not in _SCALING or not isinstance(node, ast.BinOp):
        return False
    return all(written_number(facts, side) is None for side in (node.left, node.right))


def _layers(facts: TraceIndex, number: int, before: int, first: dict[int, int]) -> list[Call]:
    """Returns the calls that computed a tensor with parameters."""
    found = (call for _, call in ancestry(facts, number, before) if not call.within and not call.writes)
    return [call for call in found if _parameters(facts, call, first) and not _is_alias(facts, call, first)]


def _alias(facts: TraceIndex, calls: list[Call], first: dict[int, int]) -> Call | None:
    """Returns the call that made an alias of a parameter, which some calls are given in its place."""
    given = (access.tensor for call in calls for access in call.inputs)
    aliases = (number for number in given if number not in first.values() and origin(facts, number) in first)
    return next((made for number in aliases if (made := facts.creator(number)) is not None), None)


def _is_alias(facts: TraceIndex, call: Call, first: dict[int, int]) -> bool:
    return any(origin(facts, each.tensor) in first for each in call.outputs)


def _parameters(facts: TraceIndex, call: Call, first: dict[int, int]) -> tuple[int, ...]:
    """Returns which parameters a call is given, also by an alias, as a `state_dict()` has it.

    `first`: the parameters by the first tensor with their memory.
    """
    origins = (origin(facts, each.tensor) for each in call.inputs)
    return tuple(first[each] for each in origins if each in first)


def _is_same(facts: TraceIndex, one: list[Call], other: list[Call], first: dict[int, int], alias: Call | None) -> bool:
    """Returns whether calls compute the same from the same parameters: at the same lines, unless an alias is used."""
    places = [{(call.op if alias else call.site, _parameters(facts, call, first)) for call in c} for c in (one, other)]
    return places[0] == places[1]
