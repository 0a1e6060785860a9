"""Finds targets of a binary cross entropy in which a line writes how well another result meets the labels, in a graph.

The score of a place is to say how well the box there meets the true one, for example. With a graph, the loss trains
the boxes, too: it makes their overlap less where the score is below zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, recorded_above, recorded_from
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.training.trained_teachers import TeacherTrained
from tensorlens.analysis.training.value_ranges import RESHAPING, ZEROS
from tensorlens.records.model import Backward, Call

_LOSSES = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits"))
_TO_TARGETS = _LOSSES | ERRORS | {"kl_div", "cross_entropy"}
_MEASURING = ERRORS | frozenset("minimum maximum min max sub rsub cosine_similarity".split())
_WRITING = frozenset("setitem index_put masked_scatter scatter where".split())
_WITHOUT_GRADIENT = frozenset("round floor ceil trunc sign heaviside".split())
_FILLED = ZEROS | {"ones", "ones_like", "new_ones", "full", "full_like", "new_full"}
_KEPT = RESHAPING | frozenset("clamp clip clamp_min clamp_max".split())
_MAX_DEPTH, _MAX_CALLS = 8, 60


def measured_targets(training: Training) -> Iterator[TeacherTrained]:
    """Yields these losses, one for each line, if their input has parameters of its own, and another term of the pass
    trains those of the target. Without one, the loss may be there to train both."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _LOSSES or call.site in reported or len(call.inputs) < 2:
                continue
            written = _written(facts, call)
            if written is None or not _is_measure(facts, *written):
                continue
            used = trained_by(training, backward)
            own, other = (used & graph_leaves(facts, access.tensor, call.index) for access in call.inputs[:2])
            only = other - own
            if only and own - other and _is_trained_otherwise(facts, backward, call, only):
                if not _is_mutual(facts, backward, call, own - other):
                    reported.add(call.site)
                    yield TeacherTrained(call, written[1], tuple(sorted(only)))


def _written(facts: TraceIndex, loss: Call) -> tuple[int, Call] | None:
    """Returns the value with a graph that a line writes at places of a target of zeros, and the call that does so."""
    number, before = loss.inputs[1].tensor, loss.index
    for _ in range(_MAX_DEPTH):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not call.inputs or not facts.requires_grad(number, before - 1):
            return None
        if op_name(call) in _WRITING:
            given = [access.tensor for access in call.inputs]
            values = [each for each in given if each != number and facts.requires_grad(each, call.index - 1)]
            filled = (facts.creator(each) for each in given if each not in values)
            makers = [facts.creator(each) for each in values]
            if any(made is not None and op_name(made) in _WITHOUT_GRADIENT for made in makers):
                return None
            is_of_zeros = any(made is not None and op_name(made) in ZEROS for made in filled)
            return (values[0], call) if len(values) == 1 and is_of_zeros else None
        if op_name(call) not in _KEPT:
            return None
        number, before = call.inputs[0].tensor, call.index
    return None


def _is_measure(facts: TraceIndex, value: int, written: Call) -> bool:
    """Returns whether a value compares a result with data of its shape, without parameters after that."""
    waiting, seen = [(value, written.index)], set[int]()
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > _MAX_CALLS:
            continue
        seen.add(call.index)
        given = [access.tensor for access in call.inputs]
        recorded = [each for each in given if facts.requires_grad(each, call.index - 1)]
        if any(facts.is_leaf_requiring_grad(each, call.index - 1) for each in recorded):
            continue
        if op_name(call) in _WITHOUT_GRADIENT:
            continue
        data = [facts.creator(each) for each in given if each not in recorded]
        is_filled = any(made is not None and op_name(made) in _FILLED for made in data)  # no labels
        if op_name(call) in _MEASURING and len(given) == 2 and len(recorded) == 1 and not is_filled:
            shapes = {facts.tensor(each).shape for each in given}
            if len(shapes) == 1 and len(*shapes) > 1:
                return True
        waiting += [(each, call.index) for each in recorded]
    return False


def _is_trained_otherwise(facts: TraceIndex, backward: Backward, loss: Call, parameters: set[int]) -> bool:
    """Returns whether a call that is no part of the target uses a value that is computed from the parameters of it."""
    own = {call.index: call for call in recorded_from(facts, [(loss.inputs[1].tensor, loss.index)])}
    results = {access.tensor for call in own.values() for access in call.outputs} - {loss.inputs[1].tensor}
    others = (call for call in recorded_above(facts, backward) if call.index not in own and call is not loss)
    used = ((access.tensor, call.index) for call in others for access in call.inputs if access.tensor in results)
    return any(parameters & graph_leaves(facts, number, index) for number, index in used)


def _is_mutual(facts: TraceIndex, backward: Backward, loss: Call, parameters: set[int]) -> bool:
    """Returns whether another loss of the pass has a target that is computed from the parameters of the input."""
    others = (each for each in recorded_above(facts, backward) if op_name(each) in _TO_TARGETS and each is not loss)
    targets = ((each.inputs[1].tensor, each.index) for each in others if len(each.inputs) > 1)
    return any(parameters & graph_leaves(facts, number, index) for number, index in targets)
