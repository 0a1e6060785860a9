"""Finds whether a term of a loss is meant to be small beside the others, as a regularizer with a weight of 1e-4 is."""

from __future__ import annotations

import re
from math import inf, prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import is_arithmetic
from tensorlens.analysis.training.summand_weights import Summand, factor_of, summands
from tensorlens.analysis.training.summed_terms import Loss, LossTerm, Term, term_name
from tensorlens.analysis.training.trained_teachers import is_recorded
from tensorlens.records.model import Call

_SMALL, _LARGE = 0.05, 1e3  # weights that a line writes for a term, or for another one
_RATIOS = frozenset("div truediv itruediv".split())
_HINGES = frozenset("relu clamp clip clamp_min clamp_max maximum minimum max min where softplus".split())
_ENTROPY = re.compile(r"(?<![a-z])ent(ropy|ropies|r)?(?![a-z])|neg_?ent|h_pi", re.IGNORECASE)
_MAX_CALLS = 2_000


def is_meant_small(facts: TraceIndex, loss: Loss, term: LossTerm, is_zero: bool) -> bool:
    """Returns whether the weights of a loss, or the kind of a term, say that the term is to have little gradient.

    A hinge that is not reached has none at all (`is_zero`).
    """
    last = term.terms[-1]
    found = list(summands(facts, last.backward))
    own = [each for each in found if _is_below(each, last)]
    others = [each for each in found if each not in own]
    if not own or any(_is_weight(facts, each, call) for each in found for call in each.unknown):
        return True
    least = min(_written_weight(facts, each) for each in own)
    if least < _SMALL or max((_written_weight(facts, each) for each in others), default=0.0) >= _LARGE:
        return True
    if _reads_parameters_alone(facts, last) or _ENTROPY.search(term_name(facts, last)):
        return True
    return is_zero and _is_hinge(facts, last)


def _is_below(each: Summand, term: Term) -> bool:
    """Returns whether a summand is a term, or what it is computed from."""
    made = {access.tensor for call in each.way for access in call.outputs}
    return each.tensor == term.tensor or term.tensor in made


def _is_weight(facts: TraceIndex, each: Summand, index: int) -> bool:
    """Returns whether a factor that the source does not say is a number, or a tensor with one number."""
    call = next((call for call in each.way if call.index == index), None)
    inputs = [] if call is None else [access.tensor for access in call.inputs]
    sizes = sorted(prod(facts.tensor(number).shape) for number in inputs)
    return len(inputs) == 1 or bool(sizes and sizes[0] == 1)


def _written_weight(facts: TraceIndex, each: Summand) -> float:
    """Returns the product of the numbers that a summand is multiplied by."""
    weight = 1.0
    for call in each.factors:
        number = abs(factor_of(facts, call)[0] or 1.0)
        weight *= 1 / number if op_name(call) in _RATIOS else number
    return weight if weight < inf else 1.0


def _reads_parameters_alone(facts: TraceIndex, term: Term) -> bool:
    read = {
        access.tensor
        for _, call in ancestry(facts, term.tensor, term.added.index, _MAX_CALLS)
        if is_recorded(facts, call)
        for access in call.inputs
        if not facts.requires_grad(access.tensor, call.index - 1)
    }
    return not any(facts.tensor(number).shape for number in read)


def _is_hinge(facts: TraceIndex, term: Term) -> bool:
    """Returns whether a term is computed by a function with a slope of zero somewhere."""
    waiting, seen = [(term.tensor, term.added.index)], set[int]()
    for number, before in waiting:
        call: Call | None = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > _MAX_CALLS or not is_arithmetic(call):
            continue
        if op_name(call) in _HINGES or "margin" in op_name(call) or "hinge" in op_name(call):
            return True
        seen.add(call.index)
        waiting += [(access.tensor, call.index) for access in call.inputs]
    return False
