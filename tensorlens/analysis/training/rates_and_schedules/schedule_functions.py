"""Finds out whether the function of a `LambdaLR` divides the steps of the scheduler by a number, as their total."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.training import LearningRateSchedule

_OTHER_COUNTS = ("epoch", "warm")  # in a name
_LIMITS = ("min", "max")
_MAX_DEPTH = 2  # functions that call each other

_Function = ast.FunctionDef | ast.Lambda


def is_divided(facts: TraceIndex, schedule: LearningRateSchedule) -> bool:
    """Returns whether the function that reads `option` divides its argument by it, as in `1 - n / total`.

    A product (`n * batches / total`) makes other steps of its argument. `n // every`, `0.5 ** (n / half)` and
    `1 / (1 + n / half)` read no total, and an argument that is named after epochs counts these.
    """
    span = None if schedule.function is None else facts.span(schedule.function)
    if span is None:
        return False
    tree = facts.tree(span.file)
    for node in ast.walk(tree):
        if not isinstance(node, _Function):
            continue
        begin = node.body if isinstance(node, ast.Lambda) else node  # of a `def`, without its decorators
        if (begin.lineno, begin.col_offset) == (span.line, span.column):
            arguments = [each for each in _arguments(node) if each not in ("self", "cls")]
            return bool(arguments) and _divides(tree, node, arguments[0], schedule.option, _MAX_DEPTH)
    return False


def _divides(tree: ast.Module, function: _Function, argument: str, total: str, depth: int) -> bool:
    if any(each in name.lower() for name in (argument, total) for each in _OTHER_COUNTS):
        return False
    nodes = [*ast.walk(function)]
    if any(isinstance(node, ast.Name) and node.id == argument and isinstance(node.ctx, ast.Store) for node in nodes):
        return False
    exponents = [node.right for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)]
    exponents += [node.right for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    exponents += [
        node for node in nodes if isinstance(node, ast.Call) and (plain_name(node.func) or "").endswith("exp")
    ]
    inner = {each for exponent in exponents for each in ast.walk(exponent)}
    quotients = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    if any(
        _is_counted(each.left, argument) and _is_total(each.right, total) and each not in inner for each in quotients
    ):
        return True
    calls = [node for node in nodes if isinstance(node, ast.Call) and depth]
    return any(_passes_on(tree, call, argument, total, depth - 1) for call in calls)


def _passes_on(tree: ast.Module, call: ast.Call, argument: str, total: str, depth: int) -> bool:
    """Returns whether a call gives both to a function that divides one by the other."""
    name = (plain_name(call.func) or "").rpartition(".")[2]
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if function is None:
        return False
    names = _arguments(function)
    given = [*zip(names, call.args, strict=False), *((each.arg or "", each.value) for each in call.keywords)]
    counts = [name for name, value in given if isinstance(value, ast.Name) and value.id == argument]
    totals = [name for name, value in given if _is_named(value, total)] or [total]
    return len(counts) == len(totals) == 1 and _divides(tree, function, counts[0], totals[0], depth)


def _is_counted(node: ast.expr, argument: str) -> bool:
    """Returns whether an expression is the argument, or this and a number more, or less those of a warm-up."""
    if isinstance(node, ast.Call) and plain_name(node.func) in _LIMITS:
        return any(_is_counted(each, argument) for each in node.args)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _is_counted(node.left, argument) and isinstance(node.right, ast.Name | ast.Attribute | ast.Constant)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_counted(node.left, argument) and isinstance(node.right, ast.Constant)
    return isinstance(node, ast.Name) and node.id == argument


def _is_total(node: ast.expr, total: str) -> bool:
    """Returns whether an expression is the total, or this less the steps of a warm-up."""
    if isinstance(node, ast.Call) and plain_name(node.func) in _LIMITS:
        return any(_is_total(each, total) for each in node.args)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _is_total(node.left, total)
    return _is_named(node, total)


def _is_named(node: ast.expr, name: str) -> bool:
    return (plain_name(node) or "").rpartition(".")[2] == name


def _arguments(function: _Function) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
