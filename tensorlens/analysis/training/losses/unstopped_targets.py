"""Finds losses that only ask two results of the same parameters to be alike, and train both.

Results that are the same for all samples have the least loss. A target of another encoder, one without a graph, or a
further term that keeps the results apart prevents that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, SUMS, op_name, trained_by
from tensorlens.analysis.training.factor_signs import factor_sign
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.losses.spread_rows import may_be_spread
from tensorlens.analysis.training.pair_tables import has_unit_rows, made_by, shape_of
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.training.value_ranges import is_count, never_negative
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_PRODUCTS = frozenset(("mul", "rmul", "multiply"))
_FLIPPING = frozenset(("neg", "rsub"))
_SCALING = _PRODUCTS | frozenset("imul div truediv itruediv idiv true_divide".split())
_LINEAR = frozenset(LINEAR)
_FOLLOWED = _LINEAR | _FLIPPING | frozenset(SUMS)
_MOST_CALLS = 80


@dataclass(frozen=True, slots=True)
class UnstoppedTarget:
    """A term of such a loss, with the parameters that both of its results are computed from."""

    term: Call
    parameters: tuple[int, ...]
    backward: Backward


def unstopped_targets(training: Training) -> Iterator[UnstoppedTarget]:
    """Yields the last term of these losses, one for each line."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts, with_asked=True):
        terms = _terms(facts, backward)
        used = trained_by(training, backward) if terms else set[int]()
        shared = [_shared(facts, term) & used for term in terms]
        if not terms or not all(shared) or any(may_be_spread(facts, term) for term in terms):
            continue
        if _is_helped(training, backward, set[int].intersection(*shared)):
            continue
        term = max(terms, key=lambda call: call.index)
        if term.site not in reported:
            reported.add(term.site)
            yield UnstoppedTarget(term, tuple(sorted(set[int].intersection(*shared))), backward)


def _terms(facts: TraceIndex, backward: Backward) -> list[Call]:
    """Returns the similarities that a loss is the negative sum of; none if it has any other term."""
    found, seen = dict[int, Call](), set[tuple[int, int]]()
    waiting = [(root.tensor, backward.index, 1) for root in backward.roots]
    for number, before, sign in waiting:
        call = made_by(facts, number, before)
        if call is None or len(seen) > _MOST_CALLS:
            return []
        if (call.index, sign) in seen:
            continue
        seen.add((call.index, sign))
        given = list(dict.fromkeys(access.tensor for access in call.inputs))
        trained = [each for each in given if facts.requires_grad(each, call.index - 1)]
        if _is_similarity(facts, call, trained):
            if sign > 0:
                return []
            found[call.index] = call
        elif op_name(call) in _FOLLOWED and trained and _keeps(facts, call, trained) and _is_weighted(facts, call):
            for each in trained:
                waiting.append((each, call.index, sign * _sign(facts, call, given, each)))
        else:
            return []
    return list(found.values())


def _keeps(facts: TraceIndex, call: Call, trained: list[int]) -> bool:
    return op_name(call) in SUMS or len(trained) == 1


def _is_weighted(facts: TraceIndex, call: Call) -> bool:
    """Returns whether another tensor that a call multiplies or divides by has no negative values, as labels have."""
    if len(call.inputs) < 2 or op_name(call) not in _SCALING:
        return True
    result, *others = [access.tensor for access in call.inputs]
    if op_name(call) in _PRODUCTS and facts.requires_grad(others[0], call.index - 1):
        result, others = others[0], [result]
    is_first = facts.requires_grad(result, call.index - 1)
    return is_first and all(
        is_count(facts, each, call.index) or never_negative(facts, each, call.index) for each in others
    )


def _sign(facts: TraceIndex, call: Call, given: list[int], number: int) -> int:
    name = op_name(call)
    if name in _FLIPPING or (name in ("sub", "isub") and len(given) == 2 and number == given[1]):
        return -1
    return factor_sign(facts, call) if name in _LINEAR and len(given) == 1 and name not in ("sum", "mean") else 1


def _is_similarity(facts: TraceIndex, call: Call, trained: list[int]) -> bool:
    """Returns whether a call compares each row of a result with the same row of another one: by the cosine, or by the
    product of rows of length 1. Both have a graph, and neither is a parameter."""
    if len(trained) != 2 or len(call.inputs) != 2 or any(len(shape_of(facts, each)) < 2 for each in trained):
        return False
    if shape_of(facts, trained[0]) != shape_of(facts, trained[1]):
        return False
    if any(facts.is_leaf_requiring_grad(each, call.index - 1) for each in trained):
        return False
    if op_name(call) == "cosine_similarity":
        return _is_along_last(facts, call)
    return op_name(call) in _PRODUCTS and all(has_unit_rows(facts, each, call.index) for each in trained)


def _is_along_last(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the dimension of a cosine, which is 1 if the source gives none, is the last one."""
    size, written = len(shape_of(facts, call.inputs[0].tensor)), written_call(facts, call)
    if written is None or not written.is_whole:
        return size == 2
    given = written.argument(0 if written.kind == "module" else 2, "dim")
    return (1 if given is None else written_number(facts, given)) in (-1, size - 1)


def _shared(facts: TraceIndex, term: Call) -> set[int]:
    """Returns the parameters of both results, if one is computed from these alone."""
    first, second = (graph_leaves(facts, access.tensor, term.index) for access in term.inputs)
    return first & second if first <= second or second <= first else set()


def _is_helped(training: Training, backward: Backward, parameters: set[int]) -> bool:
    """Returns whether another pass fills the gradients of these parameters for the same step."""
    for other in training.facts.backwards:
        if (
            other.site == backward.site
            or other.failed
            or not ({change.tensor for change in other.gradients} | set(other.inputs)) & parameters
        ):
            continue
        first, last = sorted((other.index, backward.index))
        moments = (m for number in parameters for m in training.moments.get(number, ()))
        if not any(m.kind == "update" and first < m.index < last for m in moments):
            return True
    return False
