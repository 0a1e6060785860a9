"""Finds the passes whose gradients a step finds added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TypeVar

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import GRAD_SET, Training
from tensorlens.records.model import Backward, Call

Found = TypeVar("Found")
MIN_TIMES = 2
_MOST_LOOKS = 64  # at pairs of passes of the same two lines
_MOST_PASSES = 8  # before one step


def summed_passes(training: Training) -> Iterator[tuple[Backward, Backward, set[int]]]:
    """Yields two passes whose gradients a step finds added up, in their order, with the leaves that have both."""
    pairs: dict[tuple[int, int], tuple[Backward, Backward, set[int]]] = {}
    for leaf in training.stepped:
        fills: list[Backward] = []
        for moment in training.moments.get(leaf, ()):
            event = moment.event
            if moment.kind == "fill" and isinstance(event, Backward):
                fills = [event] if moment.fresh else [*fills, event]
            elif moment.kind == "touch" and isinstance(event, Call) and _keeps_sum(event):
                continue  # it scales the sum, as clipping does
            else:
                used = moment.kind == "update" and moment.fresh and len(fills) <= _MOST_PASSES
                for first, second in combinations(fills, 2) if used else ():
                    pairs.setdefault((first.index, second.index), (first, second, set()))[2].add(leaf)
                fills = []
    return (pairs[key] for key in sorted(pairs))


def found_twice(
    training: Training, examine: Callable[[Training, Backward, Backward, set[int]], Found | None]
) -> Iterator[Found]:
    """Yields what `examine` finds in two such passes, in one order or the other, if it finds it twice or more at their
    lines: once for each pair of lines. `examine` gets the leaves that have both gradients, too."""
    found, looks = dict[tuple[int, int], list[Found]](), Counter[tuple[int, int]]()
    for first, second, leaves in summed_passes(training):
        if "autograd.grad" in (first.op, second.op):
            continue
        earlier = found.setdefault((first.site, second.site), [])
        looks[first.site, second.site] += 1
        if len(earlier) < MIN_TIMES and looks[first.site, second.site] <= _MOST_LOOKS:
            orders = (first, second), (second, first)
            results = (examine(training, *order, leaves) for order in orders)
            earlier += [each for each in results if each is not None][:1]
    yield from (each[0] for each in found.values() if len(each) >= MIN_TIMES)


def _keeps_sum(call: Call) -> bool:
    """Returns whether a change of a gradient leaves a part of each pass in it: no other values replace it."""
    return call.op != GRAD_SET and op_name(call) not in ("copy", "fill", "sub", "isub")
