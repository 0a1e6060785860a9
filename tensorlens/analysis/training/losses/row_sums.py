"""Computes the sum of each row of a target, from the calls that put it together and the numbers of the source.

A sum is a number, or a number plus a multiple of a value that is not known, as a drawn `lam`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Call

_SAME = frozenset("float to clone detach contiguous getitem index_select flip roll double type_as half".split())
_SIZES = frozenset("float to clone detach unsqueeze view reshape squeeze getitem".split())
_ZEROS = frozenset("zeros zeros_like new_zeros".split())
_FILLED = frozenset("full full_like new_full".split())
_MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Linear:
    """A number plus multiples of values that are not known."""

    number: float
    unknown: tuple[tuple[object, float], ...] = ()

    def plus(self, other: Linear, factor: float = 1.0) -> Linear:
        found = dict(self.unknown)
        for key, value in other.unknown:
            found[key] = found.get(key, 0.0) + factor * value
        kept = tuple((key, value) for key, value in found.items() if abs(value) > 1e-9)
        return Linear(self.number + factor * other.number, kept)

    def times(self, other: Linear) -> Linear | None:
        """Returns a product; None if it has products of values that are not known."""
        if self.unknown and other.unknown:
            return None
        one, number = (self, other.number) if self.unknown else (other, self.number)
        return Linear(0.0).plus(one, number)


@dataclass(frozen=True, slots=True)
class RowSum:
    """The sum of each row. `each` is the value of every element, if all are equal."""

    total: Linear
    each: Linear | None = None


def row_sum(facts: TraceIndex, number: int, before: int, depth: int = _MAX_DEPTH) -> RowSum | None:
    """Returns the sum of each row of a tensor; None if it is not known."""
    made = next(iter(facts.producers(number, before)), None)
    shape = facts.tensor(number).shape
    if made is None or len(shape) != 2 or not depth:
        return None
    name, width = op_name(made).removeprefix("i"), float(shape[-1])
    if name == "one_hot" or (name == "softmax" and _is_last(facts, made)):
        return RowSum(Linear(1.0))
    if name in _ZEROS:
        return RowSum(Linear(0.0), Linear(0.0))
    if name in _FILLED:
        value = _argument(facts, made, 1, "fill_value")
        return None if value is None else RowSum(Linear(0.0).plus(value, width), value)
    if name in ("scatter", "setitem"):
        return _written_in(facts, made, depth)
    if name in _SAME and made.inputs and not made.writes:
        source = made.inputs[0].tensor
        is_kept = facts.tensor(source).shape[1:] == shape[1:]
        return row_sum(facts, source, made.index, depth - 1) if is_kept else None
    if name == "lerp" and len(made.inputs) == 3:
        ends = [row_sum(facts, access.tensor, made.index, depth - 1) for access in made.inputs[:2]]
        is_one = all(end is not None and end.total == Linear(1.0) for end in ends)
        return RowSum(Linear(1.0)) if is_one else None
    if name in ("add", "radd", "sub"):
        return _added(facts, made, depth, -1.0 if name == "sub" else 1.0)
    if name in ("mul", "rmul", "div", "truediv"):
        return _multiplied(facts, made, depth)
    return None


def _written_in(facts: TraceIndex, made: Call, depth: int) -> RowSum | None:
    """Returns the sum after one element of each row was set to a number, by `scatter()` or by an index."""
    if op_name(made) == "scatter":
        is_one = len(made.inputs) == 2 and facts.tensor(made.inputs[1].tensor).shape[1:] == (1,)
        written = written_call(facts, made)  # `reduce="add"` adds the number
        is_set = written is not None and written.argument(4, "reduce") is None
        value = _argument(facts, made, 3, "value") if is_one and is_set else None
    else:
        value = _assigned(facts, made)
    before = row_sum(facts, made.inputs[0].tensor, made.index, depth - 1)
    if before is None or before.each is None or value is None:
        return None
    return RowSum(before.total.plus(value).plus(before.each, -1.0))


def _assigned(facts: TraceIndex, made: Call) -> Linear | None:
    """Returns the number that `target[torch.arange(n), labels] = 1 - eps` sets."""
    rows = next(iter(facts.producers(made.inputs[1].tensor, made.index)), None) if len(made.inputs) == 3 else None
    span, shape = facts.span(made.site), facts.tensor(made.inputs[0].tensor).shape
    statement = None if span is None else statement_around(facts, span)
    is_row = rows is not None and op_name(rows) == "arange"
    is_one = is_row and all(facts.tensor(access.tensor).shape == shape[:1] for access in made.inputs[1:])
    if not is_one or span is None or not isinstance(statement, ast.Assign):
        return None
    return _written(facts, span.file, statement.value)


def _added(facts: TraceIndex, made: Call, depth: int, sign: float) -> RowSum | None:
    shape = facts.tensor(made.outputs[0].tensor).shape
    if len(made.inputs) == 2:
        sums = [row_sum(facts, access.tensor, made.index, depth - 1) for access in made.inputs]
        return None if sums[0] is None or sums[1] is None else RowSum(sums[0].total.plus(sums[1].total, sign))
    one, number = row_sum(facts, made.inputs[0].tensor, made.index, depth - 1), _plain(facts, made)
    if one is None or number is None or (sign < 0 and op_name(made) != "sub"):
        return None
    return RowSum(one.total.plus(number, sign * shape[-1]))


def _multiplied(facts: TraceIndex, made: Call, depth: int) -> RowSum | None:
    is_ratio = op_name(made) in ("div", "truediv")
    if len(made.inputs) == 1:
        one, factor = row_sum(facts, made.inputs[0].tensor, made.index, depth - 1), _plain(facts, made)
    elif is_ratio:
        return None
    else:
        sides = [access.tensor for access in made.inputs]
        scale = next((each for each in sides if facts.tensor(each).shape[-1:] in ((), (1,))), None)
        rest = [each for each in sides if each != scale]
        if scale is None or len(rest) != 1:
            return None
        one, factor = row_sum(facts, rest[0], made.index, depth - 1), _value(facts, scale, made.index, depth)
    if one is None or factor is None or (is_ratio and (factor.unknown or not factor.number)):
        return None
    factor = Linear(1.0 / factor.number) if is_ratio else factor
    total, each = one.total.times(factor), one.each and one.each.times(factor)
    return None if total is None else RowSum(total, each)


def _value(facts: TraceIndex, number: int, before: int, depth: int) -> Linear:
    """Returns the values of a tensor with one number for each row: of `1 - lam`, those of `lam` count as unknown."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or not depth or len(made.inputs) != 1:
        return Linear(0.0, ((number, 1.0),))
    source, name = made.inputs[0].tensor, op_name(made)
    if name in _SIZES:
        return _value(facts, source, made.index, depth - 1)
    plain = _plain(facts, made) if name in ("rsub", "add", "radd", "sub") else None
    if plain is None:
        return Linear(0.0, ((number, 1.0),))
    inner = _value(facts, source, made.index, depth - 1)
    if name == "sub":
        return inner.plus(plain, -1.0)
    return plain.plus(inner, -1.0 if name == "rsub" else 1.0)


def _plain(facts: TraceIndex, made: Call) -> Linear | None:
    """Returns the plain number that an operator of the source adds to a tensor, or multiplies it by."""
    node, span = facts.node_at(made.site), facts.span(made.site)
    if span is None or not isinstance(node, ast.BinOp | ast.AugAssign):
        return None
    if isinstance(node, ast.AugAssign):
        return _written(facts, span.file, node.value)
    given = _tensor_side(facts, made, node)
    return None if given is None else _written(facts, span.file, node.right if given is node.left else node.left)


def _tensor_side(facts: TraceIndex, made: Call, node: ast.BinOp) -> ast.expr | None:
    """Returns the side of an operator that is the tensor: the one that a call has made, or a name that is no number."""
    span, name = facts.span(made.site), op_name(made)
    if span is None or name in ("rsub", "radd", "rmul"):
        return node.right
    source = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    place = None if source is None else facts.span(source.site)
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if place is not None and facts.span_of(side, span.file) == place:
            return side
        if number_of(facts, span.file, other) is not None:
            return side
    own = facts.name(made.inputs[0].tensor, made.index)
    named = [side for side in (node.left, node.right) if ast.unparse(side) == own]
    return named[0] if len(named) == 1 else None


def _written(facts: TraceIndex, file: str, node: ast.expr, depth: int = 4) -> Linear | None:
    """Returns the value of an expression of plain numbers; a name that has no known number counts as unknown."""
    number = number_of(facts, file, node)
    if number is not None:
        return Linear(number)
    if isinstance(node, ast.BinOp):
        left, right = (_written(facts, file, side, depth) for side in (node.left, node.right))
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add | ast.Sub):
            return left.plus(right, 1.0 if isinstance(node.op, ast.Add) else -1.0)
        if isinstance(node.op, ast.Mult):
            return left.times(right)
        is_known = isinstance(node.op, ast.Div) and not right.unknown and right.number
        return left.times(Linear(1.0 / right.number)) if is_known else None
    if isinstance(node, ast.Name | ast.Attribute):
        value = only_value(facts, last_name(node)) if depth else None
        if isinstance(value, ast.BinOp):
            return _written(facts, file, value, depth - 1)
        return Linear(0.0, ((ast.unparse(node), 1.0),))
    return None


def _argument(facts: TraceIndex, made: Call, place: int, name: str) -> Linear | None:
    written, span = written_call(facts, made), facts.span(made.site)
    node = None if written is None else written.argument(place, name)
    return None if node is None or span is None else _written(facts, span.file, node)


def _is_last(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a softmax is along the rows of two dimensions."""
    written, span = written_call(facts, made), facts.span(made.site)
    node = None if written is None else written.argument(1, "dim")
    return node is not None and span is not None and number_of(facts, span.file, node) in (1.0, -1.0)
