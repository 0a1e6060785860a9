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
from tensorlens.analysis.training.losses.compared_results import Likeness, likeness_of
from tensorlens.analysis.training.losses.spread_rows import may_be_spread
from tensorlens.analysis.training.pair_tables import made_by
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.training.value_ranges import is_count, never_negative
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
        shared = [_shared(facts, each) & used for each in terms]
        if not terms or not all(shared) or any(may_be_spread(facts, each.term) for each in terms):
            continue
        if _is_helped(training, backward, set[int].intersection(*shared)):
            continue
        term = max((each.term for each in terms), key=lambda call: call.index)
        if term.site not in reported:
            reported.add(term.site)
            yield UnstoppedTarget(term, tuple(sorted(set[int].intersection(*shared))), backward)


def _terms(facts: TraceIndex, backward: Backward) -> list[Likeness]:
    """Returns the similarities that a loss is the negative sum of, and the distances that it is the sum of; none if it
    has any other term."""
    found, seen = dict[int, Likeness](), set[tuple[int, int]]()
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
        likeness = likeness_of(facts, call)
        if likeness is not None:
            if (sign > 0) is not likeness.is_distance:
                return []
            found[call.index] = likeness
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


def _shared(facts: TraceIndex, likeness: Likeness) -> set[int]:
    """Returns the parameters of both results, if one is computed from these alone."""
    first, second = (graph_leaves(facts, number, likeness.read.index) for number in likeness.sides)
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
