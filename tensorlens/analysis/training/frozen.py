"""Finds the call that froze a parameter, and parameters that are frozen for a part of each round."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call
from tensorlens.records.observations import Step

_LAYERS = frozenset("linear addmm matmul mm conv1d conv2d conv3d".split())


def frozen_at(facts: TraceIndex, number: int) -> Call | None:
    """Finds the call after which a tensor does not require grad any more; None if none is recorded, or if it requires
    grad at the end."""
    if not facts.events:
        return None
    end = facts.events[-1].index
    if facts.requires_grad(number, end):
        return None
    call = facts.call(facts.states.last_requiring_grad(number, end + 1))
    return call if call is not None and not facts.requires_grad(number, call.index) else None


def is_frozen_for_another(training: Training, step: Step, number: int) -> bool:
    """Returns whether a parameter is frozen only while another loss is computed, as the judge of a GAN may be.

    The step is then the first to use the gradient, and the parameter gets another one in a round before or after.
    """
    filled = training.last_moment(number, step.index, "fill")
    used = training.last_moment(number, step.index, "update")
    if filled is None or (used is not None and used.index > filled.index):
        return False
    if any(moment.kind == "fill" and moment.index > step.index for moment in training.moments.get(number, ())):
        return True
    steps = (each for each in training.steps if each.index < filled.index and number in each.parameters)
    return any(not training.facts.requires_grad(number, each.index - 1) for each in steps)


@lru_cache(maxsize=8)
def is_evaluated_alone(facts: TraceIndex, site: int, between: tuple[int, int], steps: int) -> bool:
    """Returns whether layers use a parameter that a line has frozen, but not for these steps, only without a graph: it
    belongs to another task than the one that is trained, as the head of the first of two does.

    A part that runs without a graph for each step, as a trunk may, is used for them.
    """
    first, last = between
    trained: set[int] = set()
    evaluated: set[int] = set()
    counts: Counter[int] = Counter()
    for call in facts.calls_between(first):
        if op_name(call) in _LAYERS and not call.within:
            used = {each.tensor for each in call.inputs if facts.tensor(each.tensor).type == "Parameter"}
            (trained if call.mode == "grad" else evaluated).update(used)
            counts.update(used if call.index < last else ())
    others = (number for number in evaluated - trained if 2 * counts[number] < steps)
    freezes = (frozen_at(facts, number) for number in others)
    return any(call is not None and call.site == site for call in freezes)
