"""Finds values that a target picks by an `argmax()` of the same values: the choice and the value are of one network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, is_error, recorded_above
from tensorlens.analysis.training.policies_and_values.double_words import is_double
from tensorlens.analysis.training.value_ranges import SHAPING
from tensorlens.records.model import Call

_PICKING = frozenset(("gather", "take_along_dim"))
_SMALLER = frozenset("min minimum amin where".split())
_RANDOM = re.compile("dropout|rand|normal|bernoulli|multinomial|batch_norm")
_MAX_ABOVE, _MAX_EQUAL, _MAX_STEPS, _MAX_LOOKS = 200, 64, 4, 4


@dataclass(frozen=True, slots=True)
class ChosenValue:
    """A call that picks values by the places of the greatest ones of `choice`, and the calls that made both."""

    picked: Call
    choice: Call
    values: int


def chosen_values(facts: TraceIndex) -> Iterator[ChosenValue]:
    """Yields these calls in targets, one for each line.

    The program says around them that it does double Q-learning: without it, the maximum may be what is meant.
    """
    looks: Counter[int] = Counter()
    reported = set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if not is_error(call) and op_name(call) != "sub":
                continue
            targets = [a.tensor for a in call.inputs if not facts.requires_grad(a.tensor, call.index - 1)]
            for number in targets:
                for _, made in ancestry(facts, number, call.index, _MAX_ABOVE):
                    if op_name(made) not in _PICKING or looks[made.site] >= _MAX_LOOKS or made.site in reported:
                        continue
                    looks[made.site] += 1
                    found = _found(facts, made)
                    if found is not None and not _is_picked_twice(facts, found, backward.index):
                        reported.add(made.site)
                        yield found


def _found(facts: TraceIndex, picked: Call) -> ChosenValue | None:
    if len(picked.inputs) != 2:
        return None
    values, places = (access.tensor for access in picked.inputs)
    choice, before = next(iter(facts.producers(places, picked.index)), None), picked.index
    for _ in range(_MAX_STEPS):
        if choice is None or op_name(choice) not in SHAPING or len(choice.inputs) != 1:
            break
        before = choice.index
        choice = next(iter(facts.producers(choice.inputs[0].tensor, before)), None)
    if choice is None or op_name(choice) not in ("argmax", "max") or len(choice.inputs) != 1:
        return None
    compared = choice.inputs[0].tensor
    is_equal = compared == values or _are_equal(facts, (values, picked.index), (compared, choice.index))
    return ChosenValue(picked, choice, values) if is_equal and is_double(facts, choice.site) else None


def _is_picked_twice(facts: TraceIndex, found: ChosenValue, before: int) -> bool:
    """Returns whether the places pick values of another network too, or the values are the smaller ones of two, as in
    a clipped double Q-learner."""
    made = next(iter(facts.producers(found.values, found.picked.index)), None)
    if made is not None and op_name(made) in _SMALLER:
        return True
    values, places = (access.tensor for access in found.picked.inputs)
    for call in facts.calls_between(found.choice.index, before):
        if op_name(call) not in _PICKING or len(call.inputs) != 2 or call is found.picked:
            continue
        others, again = ((access.tensor, call.index) for access in call.inputs)
        if _are_equal(facts, (places, found.picked.index), again):
            if not _are_equal(facts, (values, found.picked.index), others):
                return True
    return False


def _are_equal(facts: TraceIndex, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Returns whether two tensors are computed by the same calls of the same tensors, with nothing random."""
    waiting, seen = [(one, other)], 0
    for (first, until), (second, limit) in waiting:
        if first == second and _is_same_version(facts, first, until, limit):
            continue
        seen += 1
        made, again = (next(iter(facts.producers(n, b)), None) for n, b in ((first, until), (second, limit)))
        if made is None or again is None or seen > _MAX_EQUAL or made.op != again.op or _RANDOM.search(made.op):
            return False
        if len(made.inputs) != len(again.inputs) or not made.inputs or made.writes or again.writes:
            return False
        waiting += [
            ((a.tensor, made.index), (b.tensor, again.index)) for a, b in zip(made.inputs, again.inputs, strict=True)
        ]
    return True


def _is_same_version(facts: TraceIndex, number: int, one: int, other: int) -> bool:
    """Returns whether a tensor is not changed between two events."""
    first, last = min(one, other), max(one, other)
    return not any(first < made.index < last for made in facts.producers(number, last)[:1])
