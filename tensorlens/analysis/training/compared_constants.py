"""Finds scores of a trained model that a ranking loss compares with others, and that have no graph.

`softplus(negative - positive)` lowers the one and raises the other: scores that are computed while gradients are off,
as those of mined negatives, do not move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import history_lost_at, op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_RANKING = frozenset("softplus logsigmoid relu margin_ranking_loss".split())
_DIFFERENCES = frozenset("sub rsub isub".split())
_STEPS = frozenset("mul rmul neg add radd div truediv".split())  # with a number
_MAX_STEPS = 4


@dataclass(frozen=True, slots=True)
class ComparedConstant:
    """A call that compares scores with a graph and others without one, and where these lost theirs."""

    compared: Call
    scores: int
    constant: int
    cut: Call
    trained: frozenset[int]  # the parameters that the constant was computed from and that the pass trains
    backward: Backward


def compared_constants(training: Training) -> Iterator[ComparedConstant]:
    """Yields these calls, one for each line. A `detach()` says that the constant is meant."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        used = trained_by(training, backward)
        for call in loss_calls(facts, backward):
            compared = _compared(facts, call) if op_name(call) in _RANKING and used else None
            if compared is None or compared.site in reported:
                continue
            found = _constant(training, backward, compared, used)
            if found is not None:
                reported.add(compared.site)
                yield found


def _constant(training: Training, backward: Backward, compared: Call, used: set[int]) -> ComparedConstant | None:
    """Returns the side of a comparison that the values of trained parameters have made while gradients were off."""
    facts, before = training.facts, compared.index - 1
    sides = [access.tensor for access in compared.inputs[:2]]
    recorded = [number for number in sides if facts.requires_grad(number, before)]
    if len(recorded) != 1 or sides[0] == sides[1]:
        return None
    constant = next(number for number in sides if number not in recorded)
    last = max((step.index for step in training.steps if step.index < backward.index), default=0)
    for cut, source in history_lost_at(facts, constant, compared.index):
        trained = used & graph_leaves(facts, source, cut.index)
        if cut.mode != "grad" and trained and cut.index > last:
            return ComparedConstant(compared, recorded[0], constant, cut, frozenset(trained), backward)
    return None


def _compared(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that compares two tensors for a ranking loss: itself, or the difference that it is given."""
    if op_name(call) == "margin_ranking_loss":
        return call if len(call.inputs) > 1 else None
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _DIFFERENCES and len(made.inputs) == 2:
            return made
        if op_name(made) not in _STEPS | _DIFFERENCES or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None
