"""Finds losses that compare a student with features of its teacher, and train the teacher toward the student.

Two models may be meant to meet, each from its side. Where another loss of the same pass takes a result of one of them
as a constant target for the other, the first one is the teacher. One that learns from labels, too, may be meant to meet
the student, unless the student has a layer of its own for this loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, is_error, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_DISTANCES = ERRORS | {"cosine_similarity", "cosine_embedding_loss", "dist", "pairwise_distance"}
_TO_TARGETS = ERRORS | {"kl_div", "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
_TO_LABELS = _TO_TARGETS | {"nll_loss", "sub", "rsub"}
_PRODUCTS = frozenset(("mul", "rmul"))
_EITHER_WAY = ERRORS | _PRODUCTS
_MAX_CALLS = 500


@dataclass(frozen=True, slots=True)
class TrainedHint:
    """A loss that trains the teacher, too, and another one that takes a result of the teacher as a constant."""

    loss: Call
    target: int
    made: Call  # what computed the target
    constant: Call
    parameters: tuple[int, ...]  # of the teacher


@dataclass(frozen=True, slots=True)
class _Constant:
    """A loss of what some parameters compute, whose target other ones have computed."""

    loss: Call
    own: frozenset[int]
    target: frozenset[int]
    pair: frozenset[int]  # the values that it compares, with their graphs


def trained_hints(training: Training) -> Iterator[TrainedHint]:
    """Yields these losses, one for each line."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        pairs = [pair for call in recorded_above(facts, backward) if (pair := _pair(facts, call)) is not None]
        used = trained_by(training, backward) if pairs else set[int]()
        constants = list(_constants(facts, backward, used)) if used else []
        for call, before, sides in pairs if constants else ():
            own, other = (frozenset(used & graph_leaves(facts, number, before)) for number in sides)
            if call.site in reported or not own or not other or own & other:
                continue
            others = [each for each in constants if each.pair != frozenset(sides)]  # else it adds weight to one side
            for number, student, teacher in ((sides[1], own, other), (sides[0], other, own)):
                constant = _one_way(others, student, teacher)
                made = next(iter(facts.producers(number, before)), None)
                if constant is None or made is None:
                    continue
                has_layer = bool(student - constant.own)  # only for the hint, from the student to the teacher
                if has_layer or not _is_taught(facts, backward, teacher):
                    reported.add(call.site)
                    yield TrainedHint(call, number, made, constant.loss, tuple(sorted(teacher)))


def _is_taught(facts: TraceIndex, backward: Backward, teacher: frozenset[int]) -> bool:
    """Returns whether a loss compares a result of the teacher with a constant, as with labels."""
    for call in recorded_above(facts, backward):
        inputs = [access.tensor for access in call.inputs[:2]] if op_name(call) in _TO_LABELS else []
        own = [number for number in inputs if facts.requires_grad(number, call.index - 1)]
        if len(own) == 1 and teacher & graph_leaves(facts, own[0], call.index):
            return True
    return False


def _one_way(constants: list[_Constant], student: frozenset[int], teacher: frozenset[int]) -> _Constant | None:
    """Returns a loss that takes a result of the teacher as a constant, if none goes the other way."""
    there = [each for each in constants if each.own & student and not each.own & teacher and each.target & teacher]
    back = [each for each in constants if each.own & teacher and each.target & student]
    return there[0] if there and not back else None


def _pair(facts: TraceIndex, call: Call) -> tuple[Call, int, list[int]] | None:
    """Returns the two values with a graph that a loss compares, with the event that uses them."""
    inputs = [access.tensor for access in call.inputs]
    at = call
    if op_name(call) not in _DISTANCES:
        made = next(iter(facts.producers(inputs[0], call.index)), None) if is_error(call) or _is_abs(call) else None
        if made is None or op_name(made) not in ("sub", "rsub"):
            return None
        inputs, at = [access.tensor for access in made.inputs], made
    if len(inputs) < 2 or not all(facts.requires_grad(number, at.index - 1) for number in inputs[:2]):
        return None
    return call, at.index, inputs[:2]


def _is_abs(call: Call) -> bool:
    return op_name(call) in ("abs", "absolute", "norm", "vector_norm", "linalg_norm") and bool(call.inputs)


def _constants(facts: TraceIndex, backward: Backward, used: set[int]) -> Iterator[_Constant]:
    """Yields the losses of a pass whose target has no graph and is computed from parameters that the pass trains."""
    for call in recorded_above(facts, backward):
        inputs = [access.tensor for access in call.inputs[:2]]
        is_product = op_name(call) in _PRODUCTS
        if len(inputs) < 2 or not (is_product or op_name(call) in _TO_TARGETS):
            continue
        recorded = [facts.requires_grad(number, call.index - 1) for number in inputs]
        if recorded == [False, True] and op_name(call) in _EITHER_WAY:
            inputs.reverse()
        elif recorded != [True, False]:
            continue
        if is_product and not _is_cross_entropy(facts, call, inputs):
            continue
        above = ancestry(facts, inputs[1], call.index, _MAX_CALLS)
        target = frozenset(access.tensor for _, made in above for access in made.inputs) & used
        if target:
            pair = frozenset((inputs[0], _attached(facts, inputs[1], call.index)))
            yield _Constant(call, frozenset(used & graph_leaves(facts, inputs[0], call.index)), target, pair)


def _attached(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that a constant was detached from, or itself."""
    made = next(iter(facts.producers(number, before)), None)
    is_detached = made is not None and op_name(made) in ("detach", "data.__get__") and len(made.inputs) == 1
    return made.inputs[0].tensor if made is not None and is_detached else number


def _is_cross_entropy(facts: TraceIndex, product: Call, inputs: list[int]) -> bool:
    """Returns whether a product is one of log-probabilities and probabilities: `(target * log_p).sum(1)`."""
    made = [next(iter(facts.producers(number, product.index)), None) for number in inputs]
    shapes = {facts.tensor(number).shape for number in inputs}
    return len(shapes) == 1 and made[0] is not None and op_name(made[0]) in ("log_softmax", "log")
