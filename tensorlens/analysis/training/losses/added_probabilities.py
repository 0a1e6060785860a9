"""Finds probabilities that are given to a sum of exponentials, which takes their logarithms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, is_error
from tensorlens.analysis.training.summand_weights import summands
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call

_SAME_VALUES = frozenset(
    "view reshape squeeze unsqueeze flatten transpose permute getitem contiguous float expand clone t chunk".split()
)
_LOGARITHMS = ("log_softmax", "logsigmoid")
_DISTRIBUTIONS = ("Categorical.__init__", "OneHotCategorical.__init__")
_MAX_CALLS = 40


@dataclass(frozen=True, slots=True)
class AddedProbabilities:
    """A call that takes logarithms of probabilities, and the softmax whose result it is given."""

    taking: Call
    made: Call
    is_mixture: bool  # the result is added to logarithms of densities, else it is the scores of a distribution


def added_probabilities(training: Training) -> Iterator[AddedProbabilities]:
    """Yields these calls, one for each line, if each call of the line is one."""
    facts = training.facts
    met: dict[int, list[AddedProbabilities | None]] = defaultdict(list)
    for backward in examined_passes(facts):
        for each in summands(facts, backward):
            call = each.made
            if call is not None and op_name(call) == "logsumexp" and each.weight < 0:  # the density is to rise
                made = _weights(facts, call)
                met[call.site].append(None if made is None else AddedProbabilities(call, made, is_mixture=True))
    for call in facts.calls if met or facts.backwards else ():
        if op_name(call) == "logsumexp" and facts.trace.sites[call.site].through in _DISTRIBUTIONS and call.inputs:
            made = _softmax(facts, call.inputs[0].tensor, call.index)
            met[call.site].append(None if made is None else AddedProbabilities(call, made, is_mixture=False))
    for found in met.values():
        first = found[0]
        if first is not None and all(each is not None for each in found):
            yield first


def _weights(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the softmax whose result is a summand of all that a sum of exponentials is given, beside logarithms of
    densities."""
    if not call.inputs:
        return None
    given = call.inputs[0].tensor
    made = _made(facts, given, call.index)
    if made is not None and op_name(made) == "stack":
        sums = [_made(facts, access.tensor, made.index) for access in made.inputs]
        found = [None if each is None else _added(facts, each) for each in sums]
        return found[0] if len(found) > 1 and found[0] is not None and len(set(found)) == 1 else None
    weights = None if made is None else _added(facts, made)
    return weights if weights is not None and _has_axis(facts, call, weights) else None


def _added(facts: TraceIndex, call: Call) -> Call | None:
    if op_name(call) not in ("add", "iadd", "radd") or len({access.tensor for access in call.inputs}) != 2:
        return None
    one, other = (access.tensor for access in call.inputs)
    for weights, rest in ((one, other), (other, one)):
        made = _softmax(facts, weights, call.index)
        if made is not None and _is_log_density(facts, rest, call.index):
            return made
    return None


def _has_axis(facts: TraceIndex, call: Call, weights: Call) -> bool:
    """Returns whether the sum runs over the values of a softmax: one axis has as many as the last of the softmax."""
    given, result = (facts.tensor(each.tensor).shape for each in (call.inputs[0], call.outputs[0]))
    count = facts.tensor(weights.outputs[0].tensor).shape[-1:]
    summed = [size for n, size in enumerate(given) if given[:n] + given[n + 1 :] == result]
    summed += [size for size, left in zip(given, result, strict=False) if left == 1 and len(given) == len(result)]
    return bool(count) and count[0] > 1 and count[0] in summed


def _softmax(facts: TraceIndex, number: int, before: int) -> Call | None:
    made = _made(facts, number, before)
    return made if made is not None and op_name(made) == "softmax" else None


def _made(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that computed a value, behind those that only change its shape."""
    for _ in range(_MAX_CALLS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or op_name(call) not in _SAME_VALUES or not call.inputs:
            return call
        number, before = call.inputs[0].tensor, call.index
    return None


def _is_log_density(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a value comes from `log_prob()`, is a logarithm of probabilities, or is made from squares by
    sums and products."""
    waiting, seen = [(number, before)], set[int]()
    for tensor, limit in waiting:
        call = next(iter(facts.producers(tensor, limit)), None)
        if call is None or call.index in seen or len(seen) > _MAX_CALLS:
            continue
        seen.add(call.index)
        if facts.trace.sites[call.site].through.endswith(".log_prob") or op_name(call) in _LOGARITHMS or is_error(call):
            return True
        if is_arithmetic(call) or op_name(call) in _SAME_VALUES:
            waiting += [(access.tensor, call.index) for access in call.inputs]
    return False
