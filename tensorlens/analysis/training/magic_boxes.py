"""Finds estimates of a loss whose value is right as it is, and whose gradient a factor of value 1 brings in.

Such a factor is `exp(x - x.detach())` with a sum `x` of the log-probabilities of what was sampled. The terms that it
does not multiply, as a baseline that is subtracted and added again, are there for the value.
"""

from __future__ import annotations

from tensorlens.analysis.lineage import calls_reached_by
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import SUMS, ConstantTerm, op_name
from tensorlens.records.model import Call

_DIFFERENCES = ("sub", "isub", "rsub", "div", "truediv", "true_divide")
_CUTS = frozenset(("Tensor.detach", "torch.detach", "Tensor.data.__get__"))
_SAME_VALUES = ("clone", "contiguous", "view", "reshape", "squeeze", "unsqueeze", "to", "float")
_MAX_STEPS = 3  # from the result of `detach()` on, as a copy or a new shape


def is_of_an_estimate(facts: TraceIndex, term: ConstantTerm) -> bool:
    """Returns whether a constant term belongs to such an estimate: the rest of the loss has such a factor, and reads
    what the term was computed from, as the log-probability of a sample does, or a reward."""
    reached = calls_reached_by(facts, term.backward).calls
    graph = [call for call in facts.calls if call.index in reached]
    if not any(_is_one_value(facts, call) for call in graph):
        return False
    known = {access.tensor for access in term.cut.outputs}
    for call in facts.calls:
        if not term.cut.index < call.index < term.backward.index or known.isdisjoint(a.tensor for a in call.inputs):
            continue
        if call.index in reached:
            if op_name(call) not in SUMS:
                return True
        else:
            known |= {access.tensor for access in call.outputs}
    return False


def _is_one_value(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call subtracts a value from itself, or divides it by itself, with a graph to one of both."""
    if op_name(call) not in _DIFFERENCES or len({access.tensor for access in call.inputs}) != 2:
        return False
    numbers = [access.tensor for access in call.inputs]
    trained = [number for number in numbers if facts.requires_grad(number, call.index - 1)]
    constant = [number for number in numbers if number not in trained]
    return len(trained) == len(constant) == 1 and _detached_from(facts, constant[0], call.index) == trained[0]


def _detached_from(facts: TraceIndex, number: int, before: int) -> int | None:
    """Returns the tensor that a value was detached from."""
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        number, before = made.inputs[0].tensor, made.index
        if made.op in _CUTS:
            return number
        if op_name(made) not in _SAME_VALUES:
            return None
    return None
