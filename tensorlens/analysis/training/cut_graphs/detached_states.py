"""Finds lines that detach a recurrent state at each step of a loop, although one pass goes through all steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above, recorded_from
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_CUTS = frozenset(("Tensor.detach", "torch.detach", "Tensor.data.__get__"))
_MIN_STEPS = 3
_MOST_STEPS = 1_000
_MOST_STATES = 6  # that one line cuts in a step


@dataclass(frozen=True, slots=True)
class DetachedState:
    """A line that cuts each step of a loop off from the one before."""

    cut: Call
    backward: Backward
    count: int  # steps in the graph of one pass that the line cuts


def detached_states(training: Training) -> Iterator[DetachedState]:
    """Yields these lines, each once.

    A loop that feeds back a detached output, while its state keeps the graph, is left out.
    """
    facts, reported = training.facts, set[int]()
    cuts = [call for call in facts.calls if call.op in _CUTS and len(call.inputs) == 1 and not call.within]
    cuts = [call for call in cuts if facts.requires_grad(call.inputs[0].tensor, call.index)]
    sites = {call.site for call in cuts}
    if len(cuts) < _MIN_STEPS:
        return
    for backward in examined_passes(facts):
        if sites <= reported:
            return
        above = {call.index: call for call in recorded_above(facts, backward)}
        read = {access.tensor for call in above.values() for access in call.inputs}
        made = {access.tensor for call in above.values() for access in call.outputs}
        by_site: dict[int, list[Call]] = defaultdict(list)
        for call in cuts:
            used = {access.tensor for access in call.outputs}
            if call.index < backward.index and call.inputs[0].tensor in made and used & read:
                by_site[call.site].append(call)
        for site, found in by_site.items():
            states = _states(facts, found) if site not in reported and len(found) <= _MOST_STEPS else 0
            if states:
                reported.add(site)
                yield DetachedState(found[0], backward, len(found) // states)


def _states(facts: TraceIndex, cuts: list[Call]) -> int:
    """Returns how many states a line cuts in each step, as those of several layers; 0 if it does not cut each step."""
    for states in range(1, _MOST_STATES + 1):
        if len(cuts) % states == 0 and len(cuts) // states >= _MIN_STEPS:
            if all(_cuts_all(facts, cuts[first::states]) for first in range(states)):
                return states
    return 0


def _cuts_all(facts: TraceIndex, cuts: list[Call]) -> bool:
    """Returns whether each cut value was computed from the result of the cut before, and from nothing else of the
    loop before that cut. Steps that have no parameter in common are layers, each cut off to train by its own loss."""
    first, read = cuts[0].index, list[set[int]]()
    for before, cut in pairwise(cuts):
        calls = list(recorded_from(facts, [(cut.inputs[0].tensor, cut.index)]))
        results = {access.tensor for access in before.outputs}
        if not any(results & {access.tensor for access in call.inputs} for call in calls):
            return False
        if any(first < call.index < before.index for call in calls):
            return False
        if any(access.tensor == before.inputs[0].tensor for call in calls for access in call.outputs):
            return False
        if _repeats(facts, before, cut, {call.site for call in calls if call.index > before.index}):
            return False
        read.append(_read_from_outside(facts, calls, before))
    return any(one & other or not (one or other) for one, other in pairwise(read))


def _read_from_outside(facts: TraceIndex, calls: list[Call], before: Call) -> set[int]:
    """Returns the tensors with a graph that the calls of one step read and that none of them has made."""
    step = [call for call in calls if call.index > before.index]
    made = {access.tensor for call in step for access in call.outputs}
    read = {(access.tensor, call.index) for call in step for access in call.inputs if access.tensor not in made}
    return {number for number, index in read if facts.requires_grad(number, index - 1)}


def _repeats(facts: TraceIndex, before: Call, cut: Call, sites: set[int]) -> bool:
    """Returns whether one of some lines runs twice between two cuts, with another line in between: then these cuts are
    more than one step apart."""
    met, last = set[int](), -1
    for call in facts.calls_between(before.index + 1, cut.index - 1):
        if call.site != last and call.site in sites and call.site in met:
            return True
        met.add(call.site)
        last = call.site
    return False
