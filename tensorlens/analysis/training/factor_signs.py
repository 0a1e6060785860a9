"""Reads the sign of the number that a product of one tensor multiplies by, where the source says it."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import only_value, written_number
from tensorlens.records.model import Call, Span

_Numbers = dict[str | int, float]


def factor_sign(facts: TraceIndex, call: Call) -> int:
    """Returns -1 if the source shows that the number is negative, else 1."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call):
        sides = node.args
    return -1 if span is not None and any(_is_negative(facts, call, span, side) for side in sides) else 1


def _is_negative(facts: TraceIndex, call: Call, span: Span, side: ast.expr) -> bool:
    number = written_number(facts, side)
    number = number_of(facts, span.file, side) if number is None else number
    if number is None and isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Constant):
        number = _numbers(facts, side.value).get(side.slice.value)  # type: ignore[arg-type]
    if number is None and isinstance(side, ast.Name):
        number = _of_round(facts, call, span, side)
    if number is None and isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.USub):
        made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
        return made is None or facts.span(made.site) != facts.span_of(side, span.file)  # that of the tensor
    return number is not None and number < 0


def _of_round(facts: TraceIndex, call: Call, span: Span, name: ast.Name) -> float | None:
    """Returns the number that a loop over written numbers has given a variable in the round of a call."""
    node: ast.AST | None = name
    while node is not None:
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        for loop in loops:
            over, place = loop.iter, _place(loop.target, name.id)
            if place is not None:
                numbers = list(_over(facts, over, place).values())
                rounds = _rounds(facts, call)
                return numbers[rounds.index(call.index)] if numbers and len(rounds) == len(numbers) else None
        node = parent_of(facts, span.file, node)
    return None


def _place(target: ast.expr, name: str) -> int | None:
    """Returns which of the variables of a loop a name is: 0 for the only one."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return next((n for n, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == name), None)


def _over(facts: TraceIndex, over: ast.expr, place: int) -> _Numbers:
    """Returns the numbers that one variable of a loop gets."""
    if not isinstance(over, ast.Call):
        return _numbers(facts, over) if place == 0 else {}
    called = called_name(over)
    if called == "zip" and place < len(over.args):
        return _over(facts, over.args[place], 0)
    is_dict = (called, place) in (("values", 0), ("items", 1)) and not over.args
    return _numbers(facts, over.func.value) if is_dict and isinstance(over.func, ast.Attribute) else {}


def _numbers(facts: TraceIndex, holder: ast.expr) -> _Numbers:
    """Returns the numbers of a dict, list or tuple that the source writes out in the only place that sets its name."""
    if isinstance(holder, ast.Name | ast.Attribute):
        holder = only_value(facts, holder.id if isinstance(holder, ast.Name) else holder.attr) or holder
    found: dict[str | int, float | None] = {}
    if isinstance(holder, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in holder.keys]
        pairs = zip(keys, holder.values, strict=True)
        found = {key: written_number(facts, value) for key, value in pairs if isinstance(key, str | int)}
    elif isinstance(holder, ast.List | ast.Tuple):
        found = {place: written_number(facts, value) for place, value in enumerate(holder.elts)}
    numbers = {key: value for key, value in found.items() if value is not None}
    return numbers if len(numbers) == len(found) else {}


def _rounds(facts: TraceIndex, call: Call) -> list[int]:
    """Returns the calls of the same line between two backward passes."""
    first = max((each.index for each in facts.backwards if each.index < call.index), default=-1)
    last = min((each.index for each in facts.backwards if each.index > call.index), default=call.index)
    return [each.index for each in facts.calls_between(first + 1, last) if each.site == call.site]
