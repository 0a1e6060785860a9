"""Finds lines that clip gradients by hand: that multiply them by a limit over their norm, or clamp their values."""

from __future__ import annotations

import ast
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.taken_norms import written_power
from tensorlens.analysis.training.timeline import GRAD_SET, Moment, Training
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_PRODUCTS = frozenset("mul imul rmul foreach_mul".split())
_DIVISIONS = frozenset("div idiv itruediv truediv foreach_div".split())
_CLAMPS = frozenset("clamp clip clamp_max clamp_min foreach_clamp_max foreach_clamp_min".split())
_NORMS = frozenset("norm vector_norm linalg_norm matrix_norm foreach_norm get_total_norm".split())
_SAME = frozenset(
    """
    clamp clip clamp_max clamp_min minimum min add radd iadd stack cat sum mean to float max amax abs detach flatten
    view reshape where
    """.split()
)
DATA_READ = "Tensor.data.__get__"
_SMALL = 100.0  # a bound that is no guard against an overflow
_MOST = 60  # calls


def clips_by_norm(training: Training, moment: Moment) -> bool:
    """Returns whether a line changes a gradient by a factor that falls as the norm of gradients grows."""
    change = _change(training, moment)
    name = "" if change is None else op_name(change)
    if change is None or name not in _PRODUCTS | _DIVISIONS:
        return False
    sign = -1 if name in _PRODUCTS else 1
    changed = {write.tensor for write in change.writes}
    others = {access.tensor for access in change.inputs} - changed
    factors = {number for number in others if number not in training.gradient_of}
    return len(factors) == 1 and _degree(training, factors.pop(), change.index) == sign


def scales_gradient(training: Training, moment: Moment) -> bool:
    """Returns whether a line multiplies a gradient by one number, or divides it, in place or by an assignment to
    `.grad`. A mask, which can be applied again and again, has more numbers."""
    change = _change(training, moment)
    if change is None or op_name(change) not in _PRODUCTS | _DIVISIONS:
        return False
    given = {access.tensor for access in change.inputs} | {write.tensor for write in change.writes}
    own = {number for number in given if number in training.gradient_of}
    sizes = [[prod(training.facts.tensor(number).shape) for number in part] for part in (own, given - own)]
    return all(size == 1 for size in sizes[1]) and (not sizes[1] or max(sizes[0], default=0) > 1)


def clamps_values(training: Training, moment: Moment, unknown: bool = False) -> bool:
    """Returns whether a line clamps the values of a gradient to a small number. `unknown` is the answer where the
    number is not known."""
    change = _change(training, moment)
    if change is None or op_name(change) not in _CLAMPS:
        return False
    node = training.facts.node_at(change.site)
    given = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
    numbers = [number for each in given if (number := written_number(training.facts, each)) is not None]
    return all(0 < abs(number) <= _SMALL for number in numbers) if numbers else unknown


def _change(training: Training, moment: Moment) -> Call | None:
    """Returns the call that computes the changed gradient, in place or for an assignment to `.grad`."""
    call = moment.event
    if not isinstance(call, Call) or call.within:
        return None
    if call.op != GRAD_SET:
        return call
    given = call.inputs[1].tensor if len(call.inputs) > 1 else None
    made = None if given is None else next(iter(training.facts.producers(given, call.index)), None)
    is_own = made is not None and any(access.tensor in training.gradient_of for access in made.inputs)
    return made if is_own else None


def _degree(training: Training, number: int, before: int, seen: int = 0) -> int | None:
    """Returns how a number grows with the gradients that it is computed from: 1 for their norm, -1 for a limit over it,
    0 for a ratio of two norms; None if it is computed from anything else too."""
    facts = training.facts
    call = next(iter(facts.producers(number, before)), None)
    if number in training.gradient_of:
        return 1
    if call is None or seen > _MOST:
        return None
    name, inputs = op_name(call), list(dict.fromkeys(access.tensor for access in call.inputs))
    if not inputs:
        return 0 if name in ("tensor", "full", "zeros", "ones", "as_tensor", "scalar_tensor") else None
    if name == "where":
        inputs = inputs[1:]
    found = [_degree(training, each, call.index, seen + 1) for each in inputs[:_MOST]]
    degrees = [each for each in found if each is not None]
    return _of_result(facts, call, degrees) if degrees and len(degrees) == len(found) else None


def _of_result(facts: TraceIndex, call: Call, degrees: list[int]) -> int | None:
    """Returns the degree of what a call computes of numbers with these degrees."""
    name, power = op_name(call), written_power(facts, call)
    if name in _NORMS or name in _SAME or call.op == DATA_READ:
        kinds = set(degrees) - {0}
        return None if len(kinds) > 1 else next(iter(kinds), 0)
    if power is not None:
        return int(degrees[0] * power) if (degrees[0] * power) % 1 == 0 else None
    if name in ("rtruediv", "reciprocal", "rdiv"):
        return -degrees[0]
    if name in _PRODUCTS:
        return sum(degrees)
    return degrees[0] - sum(degrees[1:]) if name in _DIVISIONS else None
