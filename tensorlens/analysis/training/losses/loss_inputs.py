"""Finds losses that are given another kind of value than they take: probabilities for scores or for logarithms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.training.value_ranges import is_scaled, keeps_above_zero
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_UNFIT = {
    "cross_entropy": ("softmax", "sigmoid"),
    "binary_cross_entropy_with_logits": ("sigmoid", "softmax"),
    "multilabel_soft_margin_loss": ("sigmoid", "softmax"),
    "nll_loss": ("softmax", "sigmoid", "linear"),
    "kl_div": ("softmax", "sigmoid", "linear"),
    "ctc_loss": ("softmax", "sigmoid", "linear"),
    "poisson_nll_loss": ("exp", "exp_"),
}
"""The functions whose results are no scores, or no logarithms of probabilities, by the loss that takes these."""
_OF_ANY_SIGN = frozenset(("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"))
"""These take a score below 0 for a probability below a half, so that an activation without such is unfit, too."""
_SAME_VALUES = frozenset("view reshape squeeze unsqueeze flatten transpose permute getitem contiguous float t".split())
_OF_RATES = "poisson_nll_loss"
_LIMITS, _LIMITS_ABOVE = frozenset(("clamp", "clip")), frozenset("hardtanh relu6 clamp_max minimum".split())
_SUMS = frozenset("add radd iadd".split())
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class UnfitInput:
    """A loss, and the call that made what it is given each time."""

    loss: Call
    made: Call
    is_activation: bool  # such as a relu, whose results are only never negative


def unfit_inputs(training: Training) -> Iterator[UnfitInput]:
    """Yields these losses, one for each line."""
    facts = training.facts
    met: dict[tuple[int, str], list[Call | None]] = {}
    first: dict[tuple[int, str], Call] = {}
    for backward in examined_passes(facts):
        for call in loss_calls(facts, backward):
            if op_name(call) in _UNFIT and (op_name(call) != _OF_RATES or _takes_logarithms(facts, call)):
                first.setdefault((call.site, call.op), call)
                met.setdefault((call.site, call.op), []).append(_made(facts, call))
    for place, found in met.items():
        made = found[0]
        if made is not None and all(each is not None and each.op == made.op for each in found):
            if op_name(made) == "linear" and _is_normalised(facts, first[place], made):
                continue
            yield UnfitInput(first[place], made, op_name(made) not in _UNFIT[op_name(first[place])])


def _is_normalised(facts: TraceIndex, loss: Call, made: Call) -> bool:
    """Returns whether a recorded call other than the loss reads a layer's result, as `logsumexp()` does."""
    results = {access.tensor for access in made.outputs}
    after = (call for call in facts.calls if call.index > made.index)
    later = (call for call in after if call.op != loss.op and op_name(call) not in _SAME_VALUES)
    return any(call.nodes[1] > call.nodes[0] and results & {access.tensor for access in call.inputs} for call in later)


def _takes_logarithms(facts: TraceIndex, loss: Call) -> bool:
    """Returns whether the source shows that a Poisson loss has its default `log_input=True`."""
    written = written_call(facts, loss)
    if written is None or not written.is_whole:
        return False
    given = written.argument(2, "log_input")
    return given is None or (isinstance(given, ast.Constant) and given.value is True)


def _has_upper_limit(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call keeps values below a limit, as logarithms of rates are before `exp()`."""
    if op_name(call) not in _LIMITS:
        return op_name(call) in _LIMITS_ABOVE
    written = written_call(facts, call)
    limit = None if written is None else written.argument(2, "max")
    return limit is not None and not (isinstance(limit, ast.Constant) and limit.value is None)


def _keeps_rates(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call adds a positive number to what it is given, or multiplies that by one."""
    if op_name(call) not in _SUMS or len(call.inputs) != 1:
        return is_scaled(facts, call)
    node = facts.node_at(call.site)
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any((written_number(facts, side) or -1) > 0 for side in sides)


def _is_never_below_chance(loss: Call, made: Call) -> bool:
    """Returns whether one choice of two has a smooth score that is never negative, as one that is forced may have."""
    return op_name(loss) == "binary_cross_entropy_with_logits" and op_name(made) == "softplus"


def _made(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns the call that made the input of a loss, if its results are unfit for it.

    A target may be a probability. So the input counts only if it alone requires grad.
    """
    trained = [access.tensor for access in loss.inputs if facts.requires_grad(access.tensor, loss.index - 1)]
    number, before = trained[0] if len(set(trained)) == 1 else -1, loss.index
    for _ in range(_MAX_DEPTH if number >= 0 else 0):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or op_name(call) in _UNFIT[op_name(loss)]:
            return call
        if op_name(loss) in _OF_ANY_SIGN and keeps_above_zero(facts, call):
            return None if _is_never_below_chance(loss, call) else call
        is_limit = op_name(loss) == _OF_RATES and _has_upper_limit(facts, call)
        if op_name(loss) == _OF_RATES and not is_limit and keeps_above_zero(facts, call):
            return call
        is_rate = op_name(loss) == _OF_RATES and (is_limit or _keeps_rates(facts, call))
        if not (is_rate or op_name(call) in _SAME_VALUES) or not call.inputs:
            return None
        number, before = call.inputs[0].tensor, call.index
    return None
