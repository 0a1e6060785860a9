"""Follows a loss back through sums, means and products with numbers: how much does an element of each tensor count?

`rec.sum(1).mean() + 0.1 * kl.mean()` counts each element of `rec` by one over the rows, and each of `kl` by 0.1 over
its elements. A tensor that the loss adds up in several ways has several weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.taken_norms import written_power
from tensorlens.analysis.written_numbers import only_value, written_number
from tensorlens.records.model import Backward, Call

_SUMS = frozenset("add radd iadd".split())
_DIFFERENCES = frozenset("sub isub".split())
_PRODUCTS = frozenset("mul rmul imul".split())
_RATIOS = frozenset("div truediv itruediv".split())
_SAME = frozenset(
    "view reshape flatten squeeze unsqueeze clone float double to contiguous permute transpose expand expand_as".split()
)
_ERRORS = frozenset(("mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy"))
_STACKS = frozenset("stack cat concat hstack vstack".split())
_MAX_STEPS = 400


@dataclass(frozen=True, slots=True)
class Summand:
    """A tensor whose elements the loss adds up."""

    tensor: int
    before: int  # the event that reads it
    weight: float  # of one element, but for the factors that are not known
    unknown: tuple[int, ...]  # the calls that multiply by a number which the source does not say, or by a tensor
    factors: tuple[Call, ...]  # all products with a number, the last first
    made: Call | None
    way: tuple[Call, ...] = ()  # all calls between the loss and the tensor, the last first


@dataclass(frozen=True, slots=True)
class _Step:
    numerator: float
    per_row: int = 0  # divisions by the number of rows
    unknown: bool = False
    is_factor: bool = False


def summands(facts: TraceIndex, backward: Backward) -> Iterator[Summand]:
    """Yields the tensors with a history on the way from a loss, each with its weight, those of one way together."""
    waiting = [(_summand(facts, root.tensor, backward.index), 0) for root in backward.roots]
    steps = 0
    while waiting and steps < _MAX_STEPS:
        each, per_row = waiting.pop()
        steps += 1
        yield replace(each, weight=each.weight / _rows(facts, each) ** per_row) if per_row else each
        call = each.made
        if call is None or facts.trace.sites[call.site].through.endswith(".log_prob"):
            continue
        for number, step in _below(facts, call):
            made = _summand(facts, number, call.index)
            unknown = (*each.unknown, call.index) if step.unknown else each.unknown
            factors = (*each.factors, call) if step.is_factor else each.factors
            weight, way = each.weight * step.numerator, (*each.way, call)
            new = replace(made, weight=weight, unknown=unknown, factors=factors, way=way)
            waiting.append((new, per_row + step.per_row))


def _rows(facts: TraceIndex, each: Summand) -> int:
    """Returns the number of rows of a summand, or of what a single number was reduced from."""
    shape = facts.tensor(each.tensor).shape
    if not shape and each.made is not None and each.made.inputs:
        shape = facts.tensor(each.made.inputs[0].tensor).shape
    return max(shape[0], 1) if shape else 1


def _summand(facts: TraceIndex, number: int, before: int) -> Summand:
    return Summand(number, before, 1.0, (), (), next(iter(facts.producers(number, before)), None))


def _below(facts: TraceIndex, call: Call) -> Iterator[tuple[int, _Step]]:
    """Yields the tensors with a history that a call adds up, or copies, each with what it multiplies the weight by."""
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    trained = [number for number in inputs if facts.requires_grad(number, call.index - 1)]
    if len(call.outputs) != 1 or not trained:
        return
    size = prod(facts.tensor(call.outputs[0].tensor).shape)
    if name in _SUMS | _DIFFERENCES or (name == "rsub" and len(inputs) == 1):
        if not _has_alpha(facts, call):
            for place, number in enumerate(inputs):
                sign = -1.0 if name == "rsub" or (name in _DIFFERENCES and place) else 1.0
                if number in trained:
                    yield number, _Step(sign * _repeats(facts, number, size))
    elif name in _STACKS and len(set(inputs)) == len(inputs):
        yield from ((number, _Step(1.0)) for number in trained)
    elif len(trained) == 1 and len(set(inputs)) == len(inputs):
        step = _single(facts, call, name, trained[0], size)
        if step is not None:
            yield trained[0], step


def _single(facts: TraceIndex, call: Call, name: str, number: int, size: int) -> _Step | None:
    repeats = _repeats(facts, number, size)
    if name in _PRODUCTS or (name in _RATIOS and call.inputs[0].tensor == number):
        return _product(facts, call, name, repeats)
    if name == "neg":
        return _Step(-1.0)
    if name == "sum":
        return _Step(1.0)
    if name == "mean":
        return _Step(size / prod(facts.tensor(number).shape))
    return _Step(repeats) if name in _SAME and len(call.inputs) == 1 else None


def _repeats(facts: TraceIndex, number: int, size: int) -> float:
    """Returns how often each element of a tensor is in a result, as by broadcasting."""
    return size / max(prod(facts.tensor(number).shape), 1)


def _product(facts: TraceIndex, call: Call, name: str, repeats: float) -> _Step:
    if len(call.inputs) > 1:
        is_mask = any("mask" in ast.unparse(side).lower() for side in factor_sides(facts, call))
        return _Step(repeats, unknown=not is_mask, is_factor=True)
    number, is_row_count = factor_of(facts, call)
    if number is not None:
        return _Step(repeats / number if name in _RATIOS else repeats * number, is_factor=True)
    return _Step(repeats, per_row=int(is_row_count), unknown=not is_row_count, is_factor=True)


def factor_of(facts: TraceIndex, call: Call) -> tuple[float | None, bool]:
    """Returns the number of a product or ratio, if the source says it, and whether it is the number of rows instead."""
    span, is_ratio = facts.span(call.site), op_name(call) in _RATIOS
    for side in factor_sides(facts, call, only_last=is_ratio) if span is not None else ():
        number = number_of(facts, span.file, side) if span is not None else None
        number = written_number(facts, side) if number is None else number
        if number:
            return number, False
        if is_ratio and _counts_rows(facts, side):
            return None, True
    return None, False


def number_name(facts: TraceIndex, call: Call) -> str:
    """Returns the source of the number of a product, if it has a name."""
    span = facts.span(call.site)
    for side in factor_sides(facts, call) if span is not None else ():
        is_name = isinstance(side, ast.Name | ast.Attribute | ast.Subscript)
        number = written_number(facts, side)
        if is_name and (number is not None or (span is not None and number_of(facts, span.file, side) is not None)):
            return ast.unparse(side)
    return ""


def factor_sides(facts: TraceIndex, call: Call, *, only_last: bool = False) -> list[ast.expr]:
    """Returns the expressions of a product, one of which is its number."""
    node = facts.node_at(call.site)
    if isinstance(node, ast.BinOp):
        return [node.right] if only_last else [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.value]
    return list(node.args[-1:]) if isinstance(node, ast.Call) else []


def factor_names(facts: TraceIndex, call: Call) -> list[str]:
    """Returns the source of the sides of a product that are a name, an attribute or an item."""
    sides = factor_sides(facts, call)
    return [ast.unparse(side) for side in sides if isinstance(side, ast.Name | ast.Attribute | ast.Subscript)]


def _counts_rows(facts: TraceIndex, side: ast.expr) -> bool:
    """Returns whether an expression is `len(x)`, `x.shape[0]` or `x.size(0)`."""
    if isinstance(side, ast.Name):
        side = only_value(facts, side.id) or side
    text = ast.unparse(side)
    is_length = isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "len"
    return is_length or text.endswith((".shape[0]", ".size(0)", ".size()[0]"))


def _has_alpha(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    return isinstance(node, ast.Call) and any(keyword.arg == "alpha" for keyword in node.keywords)


def reduced_error(facts: TraceIndex, each: Summand) -> tuple[Call, float, int] | None:
    """Returns the error function or square that a summand is, the weight of an element that it is given, and how many.

    Returns None if it is none, or if the source does not say how it reduces the elements.
    """
    call = each.made
    if call is None or not call.inputs:
        return None
    elements = prod(facts.tensor(call.inputs[0].tensor).shape)
    is_square = written_power(facts, call) == 2
    if elements <= 1 or not (is_square or (op_name(call) in _ERRORS and len(call.inputs) == 2)):
        return None
    if is_square or facts.tensor(each.tensor).shape:
        return call, each.weight, elements
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call) or called_name(node) != op_name(call):
        return None  # a module
    given = [keyword.value for keyword in node.keywords if keyword.arg == "reduction"]
    kind = given[0].value if given and isinstance(given[0], ast.Constant) else "mean" if not given else None
    if kind not in ("mean", "sum"):
        return None
    return call, each.weight / (elements if kind == "mean" else 1), elements


def written_square(facts: TraceIndex, call: Call) -> tuple[int, float] | None:
    """Returns what a call computes the square of, and what multiplies it, as in `-0.5 * z * z`; None if it is none."""
    numbers = [access.tensor for access in call.inputs]
    if written_power(facts, call) == 2:
        return numbers[0], 1.0
    if op_name(call) not in _PRODUCTS or len(numbers) != 2:
        return None
    (one, first), (other, second) = (_with_factor(facts, number, call.index) for number in numbers)
    return (one, first * second) if one == other and first * second else None


def _with_factor(facts: TraceIndex, number: int, before: int) -> tuple[int, float]:
    """Returns the tensor that a tensor is a written multiple of, and the factor; 0 if the source does not say it."""
    factor = 1.0
    made = next(iter(facts.producers(number, before)), None)
    while made is not None and len(made.inputs) == 1 and op_name(made) in _PRODUCTS | _RATIOS | {"neg"}:
        given = -1.0 if op_name(made) == "neg" else factor_of(facts, made)[0] or 0.0
        factor *= 1 / given if given and op_name(made) in _RATIOS else given
        number = made.inputs[0].tensor
        made = next(iter(facts.producers(number, made.index)), None)
    return number, factor
