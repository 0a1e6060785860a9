"""Finds out whether a network gets two equal results of one function for the same loss."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.repeated_seeds import RANDOM
from tensorlens.records.model import Backward

_COLLECTING = frozenset(
    "stack cat concat to float clone contiguous detach unsqueeze squeeze flatten permute transpose cuda cpu "
    "pin_memory".split()
)
_DRAWING_LAYERS = ("attention", "lstm", "gru", "rnn")  # these may draw for a dropout of their own
_PASSES, _MOST_RUNS, _MOST_INPUTS = 4, 2_000, 40


def is_used_twice(facts: TraceIndex, sites: set[int]) -> bool:
    """Returns whether one of the first losses uses two runs of these sites in a row, in one place of a network.

    Such calls run between passes too: a call that runs once, before, may make data or a network. No random numbers
    follow, as those of a dropout, which make two equal inputs a method.
    """
    if not facts.backwards or not any(call.site in sites for call in facts.calls_between(facts.backwards[0].index)):
        return False
    return any(_takes_twice(facts, backward, sites) for backward in facts.backwards[:_PASSES])


def _takes_twice(facts: TraceIndex, backward: Backward, sites: set[int]) -> bool:
    found: dict[tuple[object, ...], list[tuple[int, ...]]] = defaultdict(list)
    for call in recorded_above(facts, backward):
        grown = tuple(each.tensor for each in call.inputs if facts.requires_grad(each.tensor, call.index - 1))
        others = {each.tensor for each in call.inputs} - {*grown}
        if any(part in call.op for part in _DRAWING_LAYERS) or op_name(call) in RANDOM:
            return False
        if grown and len(others) == 1:
            runs = _runs(facts, others.pop(), call.index, sites)
            if runs and runs not in found[op_name(call), *grown]:
                found[op_name(call), *grown].append(runs)
    order: dict[int, list[int]] = defaultdict(list)
    for call in facts.calls if any(map(_pairs, found.values())) else ():
        if call.site in sites and call.index < backward.index:
            order[call.site].append(call.index)
    for one, other in (pair for each in found.values() for pair in _pairs(each)):
        in_a_row = all(_follows(facts, order, *runs) for runs in zip(one, other, strict=True))
        if in_a_row and not _draws(facts, max(*one, *other), backward):
            return True
    return False


def _pairs(inputs: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns two inputs of a layer, or the halves of one, each as the runs that made its rows."""
    pairs = [(one, other) for one, other in permutations(inputs[:_MOST_INPUTS], 2) if len(one) == len(other)]
    for each in inputs:
        if len(each) % 2 == 0:
            half = len(each) // 2
            pairs += [(each[:half], each[half:]), (each[::2], each[1::2])]
    return pairs


def _follows(facts: TraceIndex, order: dict[int, list[int]], one: int, other: int) -> bool:
    """Returns whether a run is the next one of its line after another run."""
    first, second = facts.call(one), facts.call(other)
    if first is None or second is None or first.site != second.site:
        return False
    runs = order[first.site]
    at = bisect_right(runs, one)
    return runs[at : at + 1] == [other]


def _draws(facts: TraceIndex, last: int, backward: Backward) -> bool:
    calls = facts.calls_between(last + 1, backward.index)
    return any(op_name(call).strip("_") in RANDOM for call in calls)


def _runs(facts: TraceIndex, tensor: int, before: int, sites: set[int]) -> tuple[int, ...]:
    """Returns the runs of some sites whose results a tensor contains as they are, in order; () if it has others too."""
    found = list(_leaves(facts, tensor, before, sites))
    return () if None in found else tuple(each for each in found if each is not None)


def _leaves(facts: TraceIndex, tensor: int, before: int, sites: set[int]) -> Iterator[int | None]:
    waiting, seen = [(tensor, before)], 0
    while waiting:
        number, limit = waiting.pop()
        call = next(iter(facts.producers(number, limit)), None)
        seen += 1
        if call is None or seen > _MOST_RUNS:
            yield None
            return
        if call.site in sites:
            yield call.index
        elif op_name(call) in _COLLECTING and call.inputs:
            waiting += [(each.tensor, call.index) for each in reversed(call.inputs)]
        else:
            yield None
            return
