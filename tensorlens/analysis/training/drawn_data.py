"""Finds losses whose only data are the numbers that some random calls draw."""

from __future__ import annotations

from collections.abc import Set

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Backward

_CONSTANT = frozenset(
    "zeros ones full empty eye arange linspace logspace zeros_like ones_like full_like empty_like scalar_tensor".split()
)
_MAX_LOOKS = 400


def is_only_data(facts: TraceIndex, backward: Backward, sites: Set[int]) -> bool:
    """Returns whether a loss is computed from parameters, constants and what random calls of some lines draw: fixed
    points of an equation, or common random numbers, make the function that is minimized the same at each step."""
    waiting = [
        (access.tensor, call.index)
        for call in recorded_above(facts, backward)
        for access in call.inputs
        if not facts.requires_grad(access.tensor, call.index - 1)
    ]
    seen = set[int]()
    for number, before in waiting:
        if number in seen or facts.tensor(number).type.endswith("Parameter"):
            continue
        seen.add(number)
        made = next(iter(facts.producers(number, before)), None)
        if made is None or len(seen) > _MAX_LOOKS:
            return False
        if made.site in sites:
            continue
        above = [each for each in made.inputs if not facts.requires_grad(each.tensor, made.index - 1)]
        if not made.inputs and op_name(made) not in _CONSTANT:
            return False
        waiting += [(each.tensor, made.index) for each in above]
    return True
