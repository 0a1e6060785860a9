"""Finds scores of a trained model that a ranking loss compares with others, and that have no graph.

`softplus(negative - positive)` lowers the one and raises the other: scores that are computed while gradients are off,
as those of mined negatives, do not move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import history_lost_at, op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_RANKING = frozenset("softplus logsigmoid relu".split())
_CLAMPS = frozenset("clamp clamp_min clip".split())
_MAXIMA = frozenset(("maximum", "max"))
_OF_INNER = {"log": "sigmoid", "log1p": "exp"}  # the same as `logsigmoid` and `softplus`
_DIFFERENCES = frozenset("sub rsub isub".split())
_SUMS = frozenset("add radd iadd".split())
_TURNING = frozenset(("neg", "rsub"))
_SHIFTS = _TURNING | frozenset("add radd sub".split())  # with a number
_STEPS = frozenset("mul rmul neg add radd div truediv".split())  # with a number
_CHOICES = frozenset("topk max amax argmax min amin argmin sort argsort multinomial".split())
_MAX_STEPS = 4
_MAX_ABOVE = 100  # calls behind a side


@dataclass(frozen=True, slots=True)
class ComparedConstant:
    """A call that compares scores with a graph and others without one, and where these lost theirs."""

    compared: Call
    scores: int
    constant: int
    cut: Call
    trained: frozenset[int]  # the parameters that the constant was computed from and that the pass trains
    backward: Backward
    is_fresh: bool  # computed after the step before


def compared_constants(training: Training) -> Iterator[ComparedConstant]:
    """Yields these calls, one for each line. A `detach()` says that the constant is meant.

    It is computed for each of several passes: a reference that is computed once stays as it is, on purpose.
    """
    facts, found = training.facts, dict[int, list[ComparedConstant]]()
    for backward in examined_passes(facts):
        used = trained_by(training, backward)
        for call in loss_calls(facts, backward):
            compared = _compared(facts, call) if used else None
            constant = None if compared is None else _constant(training, backward, compared, used)
            if constant is not None:
                found.setdefault(constant.compared.site, []).append(constant)
    for constants in found.values():
        if len({each.backward.index for each in constants}) > 1 and all(each.is_fresh for each in constants):
            yield constants[0]


def _constant(
    training: Training, backward: Backward, found: tuple[Call, list[int]], used: set[int]
) -> ComparedConstant | None:
    """Returns the side of a comparison that the values of trained parameters have made while gradients were off."""
    facts, (compared, sides) = training.facts, found
    before = compared.index - 1
    recorded = [number for number in sides if facts.requires_grad(number, before)]
    if len(recorded) != 1 or sides[0] == sides[1]:
        return None
    constant = next(number for number in sides if number not in recorded)
    last = max((step.index for step in training.steps if step.index < backward.index), default=0)
    cuts = [
        (cut.index <= last, cut, frozenset(used & graph_leaves(facts, source, cut.index)))
        for cut, source in history_lost_at(facts, constant, compared.index)
        if cut.mode != "grad"
    ]
    found_cuts = sorted((each for each in cuts if each[2]), key=lambda each: each[0])  # steps before it may be others
    if not found_cuts or _is_start(facts, constant, recorded[0], compared):
        return None
    is_stale, cut, trained = found_cuts[0]
    return ComparedConstant(compared, recorded[0], constant, cut, trained, backward, not is_stale)


def _is_start(facts: TraceIndex, constant: int, recorded: int, compared: Call) -> bool:
    """Returns whether both sides are computed of the same data by the same operations, as a value of now is compared
    with that before a change: nothing is chosen for one of them only."""
    above = [
        [made for _, made in islice(ancestry(facts, number, compared.index), _MAX_ABOVE)]
        for number in (constant, recorded)
    ]
    names = [{op_name(made) for made in calls} for calls in above]
    data = [
        {each.tensor for made in calls for each in made.inputs if _is_given(facts, each.tensor, made.index)}
        for calls in above
    ]
    is_read = any(constant == access.tensor for made in above[1] for access in made.inputs)  # by `expand_as()`
    is_chosen = is_read or not names[0].isdisjoint(_CHOICES)
    return not is_chosen and bool(data[0]) and data[0] <= data[1] and names[0] <= names[1]


def _is_given(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is computed from no other one, as data and random numbers are."""
    return not any(made.inputs for made in facts.producers(number, before)[:1])


def _compared(facts: TraceIndex, call: Call) -> tuple[Call, list[int]] | None:
    """Returns the call that compares two tensors for a ranking loss, and the two: itself, or the difference that it is
    given. `margin - positive + negative` is one, too."""
    if op_name(call) == "margin_ranking_loss":
        return (call, [access.tensor for access in call.inputs[:2]]) if len(call.inputs) > 1 else None
    number, before = _ranked(facts, call), call.index
    for _ in range(_MAX_STEPS if number is not None else 0):
        assert number is not None
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _DIFFERENCES | _SUMS and len(made.inputs) == 2:
            sides = [_side(facts, access.tensor, made.index) for access in made.inputs]
            is_turned = (sides[0][1] != sides[1][1]) != (op_name(made) in _DIFFERENCES)
            return (made, [side for side, _ in sides]) if is_turned else None
        if op_name(made) not in _STEPS | _DIFFERENCES or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _ranked(facts: TraceIndex, call: Call) -> int | None:
    """Returns what a ranking loss is to raise or to lower; None if the call is no such loss."""
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    if name in _RANKING and inputs:
        return inputs[0]
    if name in _MAXIMA and len(inputs) == 2:
        others = [each for each in inputs if facts.requires_grad(each, call.index - 1)]
        return others[0] if len(others) == 1 and _is_zero(facts, inputs, others[0], call.index) else None
    if name in _CLAMPS and inputs:
        return inputs[0] if _is_at_least_zero(facts, call) else None
    inner = next(iter(facts.producers(inputs[0], call.index)), None) if name in _OF_INNER and inputs else None
    if name == "log" and inner is not None and op_name(inner) in ("add", "clamp", "clamp_min") and inner.inputs:
        inner = next(iter(facts.producers(inner.inputs[0].tensor, inner.index)), None)  # a small number
    is_pair = inner is not None and op_name(inner) == _OF_INNER[name] and len(inner.inputs) == 1
    return inner.inputs[0].tensor if is_pair and inner is not None else None


def _is_at_least_zero(facts: TraceIndex, clamp: Call) -> bool:
    """Returns whether a clamp cuts off what is below 0, and nothing above."""
    written = written_call(facts, clamp)
    lower = None if written is None else written.argument(1, "min")
    upper = None if written is None else written.argument(2, "max")
    return lower is not None and written_number(facts, lower) == 0 and upper is None


def _is_zero(facts: TraceIndex, inputs: list[int], recorded: int, before: int) -> bool:
    makers = [facts.producers(each, before) for each in inputs if each != recorded]
    made = next((call for each in makers for call in each[:1]), None)
    node = None if made is None else facts.node_at(made.site)
    if made is None or op_name(made) in ("zeros", "zeros_like", "new_zeros"):
        return made is not None
    is_written = op_name(made) == "tensor" and isinstance(node, ast.Call) and bool(node.args)
    return is_written and written_number(facts, node.args[0]) == 0  # type: ignore[union-attr]


def _side(facts: TraceIndex, number: int, before: int) -> tuple[int, bool]:
    """Returns the tensor that a side of a sum is computed from by a number or a sign, and whether the sign is the
    other one."""
    is_turned = False
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or len(made.inputs) != 1 or op_name(made) not in _SHIFTS:
            break
        is_turned ^= op_name(made) in _TURNING or (op_name(made) == "sub" and _is_taken_from_number(facts, made))
        number, before = made.inputs[0].tensor, made.index
    return number, is_turned


def _is_taken_from_number(facts: TraceIndex, difference: Call) -> bool:
    """Returns whether a difference is `margin - scores`, and not `scores - margin`."""
    node = facts.node_at(difference.site)
    return isinstance(node, ast.BinOp) and written_number(facts, node.left) is not None
