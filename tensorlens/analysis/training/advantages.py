"""Finds log-probabilities that a loss multiplies by an estimate with a graph, while the run trains the estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_CALLS, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, is_error, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_PER_SAMPLE = frozenset(("cross_entropy", "nll_loss"))
_PICKING = frozenset(("gather", "getitem", "take_along_dim"))
_MAX_SITES = 16
_Error = tuple[Call, Backward]


@dataclass(frozen=True, slots=True)
class Advantage:
    """A product of log-probabilities and an estimate whose parameters get the gradient of the product, too."""

    product: Call
    estimate: int  # the factor
    error: Call  # the squared error, or another distance, that the run trains the estimate by
    backward: Backward
    parameters: tuple[int, ...]  # only the estimate is computed from them


def advantages(training: Training) -> Iterator[Advantage]:
    """Yields these products, one for each estimate."""
    facts = training.facts
    passes = list(examined_passes(facts))
    errors: dict[int, _Error] = {}
    trained: dict[frozenset[int], _Error] = {}  # by the parameters that an error is computed from
    for backward in passes:
        for call in recorded_above(facts, backward):
            if is_error(call):
                for number in _estimates(facts, [access.tensor for access in call.inputs], call.index):
                    errors.setdefault(number, (call, backward))
                made = call.outputs[0].tensor if call.outputs else call.inputs[0].tensor
                trained.setdefault(frozenset(graph_leaves(facts, made, call.index + 1)), (call, backward))
    reported: set[tuple[int, ...]] = set()
    for backward in passes:
        products = [call for call in recorded_above(facts, backward) if op_name(call) in _PRODUCTS]
        used = trained_by(training, backward) if products and errors else set[int]()
        for call in products if used else ():
            found = _found(training, call, (errors, trained), used)
            if found is not None and (found[1].site, *found[2]) not in reported:
                reported.add((found[1].site, *found[2]))
                yield Advantage(call, found[0], found[1], backward, found[2])


def _found(
    training: Training, call: Call, errors: tuple[dict[int, _Error], dict[frozenset[int], _Error]], used: set[int]
) -> tuple[int, Call, tuple[int, ...]] | None:
    """Finds the error that trains the estimate of a product: it reads the same tensor, or what the same parameters have
    given in another call."""
    facts = training.facts
    factors = [access.tensor for access in call.inputs]
    if len(factors) != 2 or not all(facts.requires_grad(number, call.index - 1) for number in factors):
        return None
    for score, estimate in (factors, factors[::-1]):
        if not is_score(facts, score, call.index):
            continue
        leaves = [each & used for each in (graph_leaves(facts, n, call.index) for n in (estimate, score))]
        own = leaves[0] - leaves[1]
        direct = (errors[0][number] for number in _estimates(facts, [estimate], call.index) if number in errors[0])
        again = (error for trained, error in errors[1].items() if (trained & used) - leaves[1] == own)
        error = next(direct, None) or next(again, None)
        if error is None:
            continue
        if own and own <= trained_by(training, error[1]):
            return estimate, error[0], tuple(sorted(own))
    return None


def _estimates(facts: TraceIndex, numbers: list[int], before: int) -> Iterator[int]:
    """Yields tensors with a graph, and those that they were computed from by the arithmetic of a loss."""
    waiting, seen = [(number, before) for number in numbers], set[int]()
    for number, limit in waiting:
        if number in seen or len(seen) > MAX_CALLS or not facts.requires_grad(number, limit - 1):
            continue
        seen.add(number)
        yield number
        call = next(iter(facts.producers(number, limit)), None)
        if call is not None and is_arithmetic(call) and op_name(call) not in _PRODUCTS:
            waiting += [(access.tensor, call.index) for access in call.inputs]


def is_score(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor was computed by arithmetic from log-probabilities that a distribution gives, or that
    are picked from a `log_softmax()`."""
    waiting, seen = [(number, before)], set[int]()
    for at, limit in waiting:
        call = next(iter(facts.producers(at, limit)), None)
        if call is None or call.index in seen or len(seen) > _MAX_SITES:
            continue
        seen.add(call.index)
        if facts.trace.sites[call.site].through.endswith(".log_prob"):
            return True
        name = op_name(call)
        if name in _PER_SAMPLE and facts.tensor(at).shape:
            return True
        if name in _PICKING and call.inputs:
            picked = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
            if picked is not None and op_name(picked) == "log_softmax":
                return True
        if is_arithmetic(call):
            waiting += [(access.tensor, call.index) for access in call.inputs]
    return False
