"""Names derivatives of several outputs that `autograd.grad()` has added up, and that meet each of the outputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import is_written_between
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_GRAD = "autograd.grad"
_ONES = frozenset(("ones_like", "ones", "new_ones"))
_MEETING = frozenset("add radd sub rsub mse_loss l1_loss smooth_l1_loss huber_loss".split())
_PER_ELEMENT = frozenset("mul rmul div truediv neg unsqueeze getitem reshape view".split())
_POWERS = frozenset("pow square abs".split())
_PRODUCTS = frozenset("mul rmul div truediv".split())
_MAX_CALLS = 4  # between the derivatives and the line that broadcasts them


@dataclass(frozen=True, slots=True)
class _Derivative:
    """A result of `autograd.grad()` that is the sum of the derivatives of several columns."""

    gradient: Call
    outputs: int  # the tensor with the columns
    given: int  # the tensor with one column that they are differentiated by


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            for each in _derivatives(facts, call) if op_name(call) in _MEETING and len(call.inputs) == 2 else ():
                gradient = each.gradient
                if gradient.site in reported:
                    continue
                reported.add(gradient.site)
                columns, given = facts.tensor(each.outputs).shape[-1], named(facts, each.given, gradient.index)
                yield stands_out(
                    f"{as_written(facts, gradient)} gives one derivative for each element of {given}, of shape "
                    f"{facts.tensor(each.given).shape}: the sum over the {columns} columns of "
                    f"{named(facts, each.outputs, gradient.index)}. {as_written(facts, call)} broadcasts it to all of "
                    "them",
                    facts.label("value_made_here", gradient.site, "added up here", gradient.index),
                    facts.label("needed_here", call.site, "used for each column", call.index),
                )


def _derivatives(facts: TraceIndex, call: Call) -> Iterator[_Derivative]:
    """Yields the gradients of a sum over columns that a call broadcasts against as many columns."""
    one, other = (access.tensor for access in call.inputs)
    for number, whole in ((one, other), (other, one)):
        each = _derivative(facts, number, call.index) if facts.tensor(number).shape[-1:] == (1,) else None
        if each is None:
            continue
        shape = facts.tensor(each.outputs).shape
        if facts.tensor(whole).shape == shape and facts.tensor(number).shape == (*shape[:-1], 1):
            yield each


def _derivative(facts: TraceIndex, number: int, before: int) -> _Derivative | None:
    """Returns the gradients that a tensor is computed from, element by element."""
    size, divisors = prod(facts.tensor(number).shape), list[ast.expr]()
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or made.op == _GRAD:
            found = None if made is None else _adds_columns(facts, made, number)
            columns = 0 if found is None else facts.tensor(found.outputs).shape[-1]
            return None if any(_is_count(facts, each, columns) for each in divisors) else found
        inputs = [access.tensor for access in made.inputs if prod(facts.tensor(access.tensor).shape) == size]
        if op_name(made) not in _PER_ELEMENT or not inputs:
            return None
        divisors += _divisor(facts, made)
        number, before = next((each for each in inputs if _is_gradient(facts, each, made)), inputs[0]), made.index
    return None


def _divisor(facts: TraceIndex, call: Call) -> list[ast.expr]:
    """Returns what the source divides by, in a list."""
    if op_name(call) not in ("div", "truediv"):
        return []
    written, node = written_call(facts, call), facts.node_at(call.site)
    value = node.right if isinstance(node, ast.BinOp) else None if written is None else written.argument(1, "other")
    return [] if value is None else [value]


def _is_count(facts: TraceIndex, divisor: ast.expr, columns: int) -> bool:
    """Returns whether a divisor is the number of columns, so that the sum becomes a mean: `3`, `state.shape[1]`."""
    if isinstance(divisor, ast.Subscript) and last_name(divisor.value) == "shape":
        return written_number(facts, divisor.slice) in (1, -1)
    if isinstance(divisor, ast.Call) and last_name(divisor.func) == "size" and divisor.args:
        return written_number(facts, divisor.args[-1]) in (1, -1)
    return written_number(facts, divisor) == columns


def _is_gradient(facts: TraceIndex, number: int, user: Call) -> bool:
    return any(made.op == _GRAD for made in facts.producers(number, user.index)[:1])


def _adds_columns(facts: TraceIndex, gradient: Call, number: int) -> _Derivative | None:
    """Returns the facts if a call differentiates all columns of a tensor by the only column of another: it is given
    ones, or the sum of the tensor."""
    results, inputs = ([access.tensor for access in part] for part in (gradient.outputs, gradient.inputs))
    if number not in results or len(inputs) - len(results) not in (1, 2):
        return None
    root, given = inputs[0], inputs[1 + results.index(number)]
    if len(inputs) - len(results) == 2:
        outputs = root if _is_ones(facts, inputs[-1], gradient) else None
    else:
        outputs = _summed(facts, root, gradient)
    if outputs is None:
        return None
    shape, of_given = facts.tensor(outputs).shape, facts.tensor(given).shape
    is_column = len(shape) > 1 and shape[-1] > 1 and of_given in (shape[:-1], (*shape[:-1], 1))
    return _Derivative(gradient, outputs, given) if is_column else None


def _is_ones(facts: TraceIndex, weights: int, gradient: Call) -> bool:
    made = next(iter(facts.producers(weights, gradient.index)), None)
    is_whole = facts.tensor(weights).shape == facts.tensor(gradient.inputs[0].tensor).shape
    is_made = made is not None and op_name(made) in _ONES and is_whole
    return made is not None and is_made and not is_written_between(facts, weights, made, gradient.index)


def _summed(facts: TraceIndex, root: int, gradient: Call) -> int | None:
    """Returns the tensor whose elements a number is the sum of, as `u.sum()` or `u.sum(0).sum()`."""
    number, before = root, gradient.index
    if facts.tensor(number).shape != ():
        return None
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) != "sum" or len(made.inputs) != 1:
            break
        number, before = made.inputs[0].tensor, made.index
    return number if number != root and not _is_energy(facts, number, before) else None


def _is_energy(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether columns are squares or products, whose sum is meant: `(u * u).sum()`, `(u * weights).sum()`."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or op_name(made) in _POWERS:
        return made is not None
    widths = [(1, *facts.tensor(access.tensor).shape)[-1] for access in made.inputs]
    return op_name(made) in _PRODUCTS and sum(width > 1 for width in widths) > 1
