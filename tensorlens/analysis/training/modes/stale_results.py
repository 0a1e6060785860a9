"""Finds values that evaluations use although steps have changed the parameters that they were computed from.

A cache that the first evaluation fills gives such values, if training computes them anew at the same lines.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import recorded_from
from tensorlens.analysis.training.modes.passed_values import is_passed
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call, Span

_MIN_STEPS = 3
_MOST_CALLS = 256  # above a value that a loss uses
_MOST_VALUES = 200  # that are computed from one parameter without a graph
_MOST_LOOKS = 8


@dataclass(frozen=True, slots=True)
class StaleResult:
    """A value that was computed once without a graph, and that a line uses after steps of the parameter below it."""

    parameter: int
    made: Call  # computed from the parameter, while no graph was recorded
    kept: Call  # whose result is used later
    used: Call  # the last use
    fresh: Call  # the same line as `used`, with a value that was computed anew, in a graph
    steps: int  # of the parameter between `made` and `used`


def stale_results(training: Training) -> Iterator[StaleResult]:
    """Yields one for each parameter, with its first such value."""
    facts, steps = training.facts, defaultdict[int, list[int]](list)
    for step in training.steps:
        for number, gradient in zip(step.parameters, step.gradients, strict=True):
            if gradient is not None:
                steps[number].append(step.index)
    plain, recorded = _users(facts, steps)
    last = {(number, op): calls[-1].index for (number, op, _), calls in sorted(plain.items(), key=_last)}
    done = set[int]()
    for (number, op, code), calls in plain.items():
        again, after = recorded.get((number, op, code), []), steps[number]
        place = bisect_right(after, calls[0].index)
        if (
            number in done
            or calls[0].index < training.complete_from
            or len(after) - place < _MIN_STEPS
            or last[number, op] > after[place]
        ):
            continue  # a later evaluation computes it anew
        if again and again[-1].index > after[place]:
            found = _found(facts, calls[0], again, after[place])
            count = 0 if found is None else bisect_left(after, found[1].index) - place
            if found is not None and count >= _MIN_STEPS:
                done.add(number)
                yield StaleResult(number, calls[0], *found, count)


_Place = tuple[int, str, str]  # a parameter, an operation, and the code of its call
_Users = dict[_Place, list[Call]]


def _last(users: tuple[_Place, list[Call]]) -> int:
    return users[1][-1].index


def _users(facts: TraceIndex, steps: dict[int, list[int]]) -> tuple[_Users, _Users]:
    """Returns the calls that use a parameter without a graph and those that do with one, of each code."""
    plain, recorded = defaultdict[_Place, list[Call]](list), defaultdict[_Place, list[Call]](list)
    codes = dict[int, str]()
    for call in facts.calls if steps else ():
        if call.within or call.writes or not call.outputs:
            continue
        for access in call.inputs:
            if access.tensor in steps:
                users = recorded if call.nodes[1] > call.nodes[0] else plain
                if call.site not in codes:
                    node = facts.node_at(call.site)
                    codes[call.site] = "" if node is None else ast.unparse(node)
                users[access.tensor, call.op, codes[call.site]].append(call)
    return plain, recorded


def _found(facts: TraceIndex, made: Call, again: list[Call], step: int) -> tuple[Call, Call, Call] | None:
    """Returns what made the value that is used after a step, its last use, and a call of this place with a fresh one.

    Nothing writes to the values later, and no graph has a use for them: there they may be what a loss compares with.
    """
    values = _values(facts, made, step)
    storages = {storage for number in values for storage in facts.storages_of(number)}
    used, below, places = list[Call](), set(values), defaultdict[Span, list[Call]](list)
    for call in facts.calls_between(step + 1):
        if any(facts.storage_of(write.tensor, call.index) in storages for write in call.writes):
            return None
        given = {access.tensor for access in call.inputs}
        if call.nodes[1] > call.nodes[0]:
            if not below.isdisjoint(given):
                return None
            places[_span(facts, call)].append(call)
        elif not call.within and not below.isdisjoint(given):
            below |= {access.tensor for access in call.outputs}
            if not values.isdisjoint(given):
                used.append(call)
    indices = {call.index for call in again}
    uses = ((use, other) for use in reversed(used[-_MOST_LOOKS:]) for other in places[_span(facts, use)][-_MOST_LOOKS:])
    found = next(((use, other) for use, other in uses if _is_fresh(facts, use, other, values, indices)), None)
    if found is None:
        return None
    number = next(access.tensor for access in found[0].inputs if access.tensor in values)
    return next(iter(facts.producers(number, found[0].index)), made), *found


def _span(facts: TraceIndex, call: Call) -> Span:
    return facts.trace.sites[call.site].span


def _is_fresh(facts: TraceIndex, use: Call, other: Call, values: set[int], makers: set[int]) -> bool:
    """Returns whether a call has a result of some makers in the place where `use` has one of the values.

    Where each caller of a function gives it its own value, that of before can be meant.
    """
    position = next(n for n, access in enumerate(use.inputs) if access.tensor in values)
    if other.op != use.op or position >= len(other.inputs) or is_passed(facts, use, position):
        return False
    number = other.inputs[position].tensor
    above = islice(recorded_from(facts, [(number, other.index)]), _MOST_CALLS)
    return facts.requires_grad(number, other.index - 1) and any(call.index in makers for call in above)


def _values(facts: TraceIndex, made: Call, end: int) -> set[int]:
    """Returns what is computed from the result of a call, before the next step of the parameter."""
    values = {access.tensor for access in made.outputs}
    for call in facts.calls_between(made.index + 1, end):
        if len(values) > _MOST_VALUES:
            break
        if call.nodes[1] <= call.nodes[0] and not call.within and any(each.tensor in values for each in call.inputs):
            values |= {access.tensor for access in call.outputs}
    return values
