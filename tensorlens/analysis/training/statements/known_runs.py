"""Finds whether a statement that may have no torch call has run, by the calls of the trace around it."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import block_around, function_around, parent_of, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.statements.written_words import is_written

_TORCHS = frozenset("train eval apply to step forward".split())  # methods of torch's classes, too
_MAYBE = ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension | ast.GeneratorExp
_ENDING = ast.Return | ast.Raise | ast.Yield | ast.YieldFrom | ast.Continue | ast.Break
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_run(facts: TraceIndex, file: str, statement: ast.stmt, seen: tuple[ast.AST, ...] = ()) -> bool:
    """Returns whether its block has made torch calls above and below a statement, or a caller of its function has.

    A recording that began in between would have none above.
    """
    block = block_around(facts, file, statement)
    place = next((number for number, each in enumerate(block) if each is statement), None)
    if place is None:
        return False
    function = function_around(facts, file, statement.lineno)
    lines = {site.span.line for site in facts.trace.sites if site.span.file == file}
    own = {line for line in lines if function_around(facts, file, line) is function}
    if _has_any(own, block[:place]) and _has_any(own, block[place + 1 :]):
        return True
    holder = parent_of(facts, file, statement)
    if isinstance(holder, ast.For) and block is holder.body and not _may_end(block[:place]):
        return is_written(facts, file, holder.iter) and has_run(facts, file, holder, seen)
    if isinstance(holder, ast.With):
        return has_run(facts, file, holder, seen)
    if not isinstance(holder, ast.FunctionDef) or holder in seen or _may_end(block[:place]):
        return False
    calls = [(name, call) for name, tree in facts.trees() for call in _calls(facts, file, holder, tree)]
    return any(_is_sure(facts, name, call, (*seen, holder)) for name, call in calls)


def _has_any(lines: set[int], block: list[ast.stmt]) -> bool:
    return any(each.lineno <= line <= (each.end_lineno or each.lineno) for each in block for line in lines)


def _may_end(block: list[ast.stmt]) -> bool:
    nodes = (node for each in block for node in ast.walk(each))
    return any(isinstance(node, _ENDING) for node in nodes)


def _calls(facts: TraceIndex, file: str, function: ast.FunctionDef, tree: ast.Module) -> list[ast.Call]:
    """Returns the calls of a function that a file writes, if the program has one function of that name; those of a
    constructor are the calls of its class."""
    holder = parent_of(facts, file, function)
    named: ast.FunctionDef | ast.ClassDef = function
    if isinstance(holder, ast.ClassDef) and function.name == "__init__":
        named = holder
    is_method = named is function and isinstance(holder, ast.ClassDef)
    nodes = (node for _, each in facts.trees() for node in ast.walk(each))
    same = [node for node in nodes if isinstance(node, _Function | ast.ClassDef) and node.name == named.name]
    if len(same) != 1 or (is_method and named.name in _TORCHS):
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if is_method:
        return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == named.name]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == named.name]


def _is_sure(facts: TraceIndex, file: str, call: ast.Call, seen: tuple[ast.AST, ...]) -> bool:
    """Returns whether a call runs whenever its statement does, and that has run."""
    statement = statement_around(facts, facts.span_of(call, file))
    node: ast.AST | None = call
    while node is not None and node is not statement:
        if isinstance(node, _MAYBE):
            return False
        node = parent_of(facts, file, node)
    is_simple = isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return | ast.For)
    return is_simple and statement is not None and has_run(facts, file, statement, seen)
