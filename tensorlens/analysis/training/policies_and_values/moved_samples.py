"""Finds log-probabilities of samples that a line has squashed since the same distribution has drawn them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.policies_and_values.advantages import is_score
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Backward, Call

_SQUASHES = frozenset("tanh sigmoid".split())  # a clamp may be a guard that moves no sample
_KEEPING = RESHAPING | frozenset("stack cat unbind select index_select chunk split sum mean mul".split())
_DRAWS = (".sample", ".rsample")
_MAX_STEPS = 8


@dataclass(frozen=True, slots=True)
class MovedSample:
    """The call that moved a sample, and the first call of the log-probability that takes the result."""

    moved: Call
    density: Call


def moved_samples(facts: TraceIndex) -> Iterator[MovedSample]:
    """Yields these log-probabilities if a loss is computed from them, each line once."""
    reported = set[int]()
    for backward in examined_passes(facts):
        for density in _densities(facts, backward):
            if density.site in reported or len(density.inputs) != 2:
                continue
            value, location = (access.tensor for access in density.inputs)
            moved = next(iter(facts.producers(value, density.index)), None)
            if moved is None or op_name(moved) not in _SQUASHES or not moved.inputs:
                continue
            if _is_drawn(facts, moved, location):
                reported.add(density.site)
                yield MovedSample(moved, density)


def _densities(facts: TraceIndex, backward: Backward) -> Iterator[Call]:
    """Yields the differences of values and locations in the log-probabilities of a loss, also in those of an older
    policy that a ratio compares with the present ones."""
    for call in recorded_above(facts, backward):
        if op_name(call) != "sub" or len(call.inputs) != 2:
            continue
        if _is_density(facts, call):
            yield call
            continue
        others = [access.tensor for access in call.inputs if not facts.requires_grad(access.tensor, call.index - 1)]
        graph = [access.tensor for access in call.inputs if access.tensor not in others]
        old = _source(facts, others[0], call.index) if len(others) == len(graph) == 1 else None
        if old is not None and _is_density(facts, old) and is_score(facts, graph[0], call.index):
            calls = facts.calls_between(old.index - 2 * _MAX_STEPS, old.index)
            yield from (each for each in calls if each.site == old.site and op_name(each) == "sub")


def _is_density(facts: TraceIndex, call: Call) -> bool:
    return facts.trace.sites[call.site].through.endswith(".log_prob")


def _source(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that made the values that a tensor is taken of, or is a sum of."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MAX_STEPS):
        if made is None or op_name(made) not in _KEEPING or not made.inputs or _is_density(facts, made):
            break
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    return made


def _is_drawn(facts: TraceIndex, moved: Call, location: int) -> bool:
    """Returns whether a call moves a sample that was drawn around a location."""
    drawn = next(iter(facts.producers(moved.inputs[0].tensor, moved.index)), None)
    if drawn is None or not facts.trace.sites[drawn.site].through.endswith(_DRAWS):
        return False
    for access in drawn.inputs:
        made = next(iter(facts.producers(access.tensor, drawn.index)), None)
        expanded = [made.inputs[0].tensor] if made is not None and op_name(made) == "expand" and made.inputs else []
        if location in (access.tensor, *expanded):
            return True
    return False
