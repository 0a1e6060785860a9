"""Finds terms that the losses of two backward passes have in common, so that their gradient counts in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_CALLS, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, SUMS, op_name
from tensorlens.analysis.training.gradients.summed_passes import summed_passes
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward

_ADDS = frozenset(SUMS) - {"sub", "isub", "rsub"}
_KEEPS = frozenset(LINEAR) - {"neg"}
_MOST_PAIRS = 4  # of passes of the same two lines that are looked at
_Value = tuple[int, int]
"""A tensor, and the call that gave it its value: a sum in place changes it later."""


@dataclass(frozen=True, slots=True)
class RecountedTerm:
    """A term of the losses of two passes, whose gradients one step uses together."""

    term: int
    at: int  # the event from which on it has the value
    first: Backward
    second: Backward
    is_first: bool  # it is the whole loss of the first pass
    is_second: bool


def recounted_terms(training: Training) -> Iterator[RecountedTerm]:
    """Yields each pair of lines once, with the outermost term that both have."""
    seen: Counter[tuple[int, int]] = Counter()
    found: set[tuple[int, int]] = set()
    parts: dict[int, dict[_Value, None]] = {}
    for first, second, leaves in summed_passes(training):
        lines = first.site, second.site
        seen[lines] += 1
        if lines in found or seen[lines] > _MOST_PAIRS:
            continue
        for backward in (first, second):
            if backward.index not in parts:
                parts[backward.index] = _parts(training.facts, backward)
        one, other = parts[first.index], parts[second.index]
        value = next((each for each in one if each in other), None)
        if value is not None and leaves & graph_leaves(training.facts, value[0], first.index):
            found.add(lines)
            whole = (value == next(iter(one)), value == next(iter(other)))
            yield RecountedTerm(value[0], value[1] + 1, first, second, *whole)


def _parts(facts: TraceIndex, backward: Backward) -> dict[_Value, None]:
    """Returns the root of a pass and what it is made from by sums and products with constants, the nearest first."""
    found: dict[_Value, None] = {}
    waiting = [(root.tensor, backward.index) for root in backward.roots]
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or len(found) > MAX_CALLS:
            continue
        if (number, call.index) in found:
            continue
        found[number, call.index] = None
        inputs = list(dict.fromkeys(access.tensor for access in call.inputs))
        history = [each for each in inputs if facts.requires_grad(each, call.index - 1)]
        is_sum = op_name(call) in _ADDS or (op_name(call) in ("sub", "isub") and history == inputs[:1])
        if is_sum or (op_name(call) in _KEEPS and len(history) == 1):
            waiting += [(each, call.index) for each in history]
    return found
