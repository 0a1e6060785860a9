"""Finds out whether the callers of a line give it the values that it uses, or several values in a loop do.

`def unit(z): return F.normalize(z)` has the `z` of each call: those who call it choose the value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, parent_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, arguments_of, calls_of
from tensorlens.records.model import Call

_MOST = 4  # functions that pass a value on
_LOOPS = ast.For | ast.AsyncFor | ast.comprehension
_PARTS = frozenset("items values zip enumerate reversed sorted list tuple".split())


def is_passed(facts: TraceIndex, call: Call, place: int) -> bool:
    """Returns whether the input of a call is an argument of the function around, to which several calls give
    different values, or a variable of a loop through values that the source lists."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    given = [] if node is None else list(_operands(call, node))
    if span is None or place >= len(given):
        return False
    file, value = span.file, given[place]
    for _ in range(_MOST):
        if not isinstance(value, ast.Name):
            return False
        if _is_of_lambda(facts, file, value) or _is_of_loop(facts, file, value):
            return True
        function = function_around(facts, file, value.lineno)
        if function is None or value.id not in arguments_of(function):
            return False
        calls = calls_of(facts, file, function)
        passed = [argument_of(facts, file, function, each, value.id) for each in calls or ()]
        if len({"" if each is None else ast.unparse(each) for each in passed}) != 1 or passed[0] is None:
            return True
        value = passed[0]
    return True


def _operands(call: Call, node: ast.AST) -> Iterator[ast.expr]:
    """Yields what an operation is given, in order."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.UnaryOp | ast.Subscript | ast.Attribute):
        yield node.operand if isinstance(node, ast.UnaryOp) else node.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and call.op == f"Tensor.{node.func.attr}":
            yield node.func.value
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from each.elts if isinstance(each, ast.List | ast.Tuple) else (each,)


def _is_of_lambda(facts: TraceIndex, file: str, name: ast.Name) -> bool:
    return any(
        isinstance(each, ast.Lambda) and any(argument.arg == name.id for argument in each.args.args)
        for each in _around(facts, file, name)
    )


def _is_of_loop(facts: TraceIndex, file: str, name: ast.Name) -> bool:
    """Returns whether a name is the variable of a loop around it, unless a function of the program gives its values."""
    for each in _around(facts, file, name):
        loops = [each] if isinstance(each, _LOOPS) else getattr(each, "generators", [])
        for loop in loops:
            if any(isinstance(part, ast.Name) and part.id == name.id for part in ast.walk(loop.target)):
                return not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) in _PARTS
    return False


def _around(facts: TraceIndex, file: str, node: ast.AST) -> Iterator[ast.AST]:
    """Yields what a part of the source is in, up to the function around it."""
    above = parent_of(facts, file, node)
    while above is not None and not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
        yield above
        above = parent_of(facts, file, above)
