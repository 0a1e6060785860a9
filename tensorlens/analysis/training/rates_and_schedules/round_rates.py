"""Finds out whether the code that gives a learning rate reads in which round of a loop it runs.

A program that reads the number of the round, or what follows from it, gives the later rounds their rates on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from tensorlens.analysis.code_around import parent_of, statement_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Node = tuple[str, ast.AST]
_MAX_PASSES, _MAX_PARTS = 6, 40


def reads_round(facts: TraceIndex, loop: Span, causes: list[Span]) -> bool:
    """Returns whether a line that sets a rate, or makes a scheduler, depends on the round of the loop with a head."""
    statement = statement_around(facts, loop)
    if statement is None:
        return False
    dependent = _dependent(facts, loop.file, statement)
    return any(_reads(facts, part, dependent) for cause in causes for part in _parts(facts, cause))


def _dependent(facts: TraceIndex, file: str, loop: ast.stmt) -> set[str]:
    """Returns the names that depend on the round: the variable of the loop, a count of its rounds, and what follows."""
    own = [loop.target] if isinstance(loop, ast.For | ast.AsyncFor) else []
    own += [each.target for each in getattr(loop, "body", ()) if isinstance(each, ast.AugAssign)]
    dependent = {name for each in own for name in _names(facts, file, each)}
    nodes = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree)]
    functions: dict[str, list[_Node]] = {}
    for where, node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            functions.setdefault(node.name, []).append((where, node))
    for _ in range(_MAX_PASSES):
        size = len(dependent)
        for where, node in nodes:
            dependent.update(_follow(facts, (where, node), dependent, functions))
        if len(dependent) == size:
            break
    return dependent


def _follow(facts: TraceIndex, at: _Node, dependent: set[str], functions: dict[str, list[_Node]]) -> Iterator[str]:
    """Yields the names that a statement gives a value that depends on other names."""
    file, node = at
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        if _reads(facts, (file, node.value), dependent):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _names(facts, file, target)
    elif isinstance(node, ast.If) and _reads(facts, (file, node.test), dependent):
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Store):
                yield _key(facts, file, each)
    elif isinstance(node, ast.Call):
        for where, called in functions.get(last_name(node.func), ()):
            yield from _given(facts, at, (where, called), dependent)


def _given(facts: TraceIndex, at: _Node, called: _Node, dependent: set[str]) -> Iterator[str]:
    """Yields the parameters of a function that a call gives values that depend on names."""
    (file, call), (_, function) = at, called
    if isinstance(function, ast.ClassDef):
        makers = (each for each in function.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
        function = next(makers, function)
    if not isinstance(call, ast.Call) or not isinstance(function, ast.FunctionDef):
        return
    names = [each.arg for each in [*function.args.posonlyargs, *function.args.args]]
    placed = zip(names[names[:1] in (["self"], ["cls"]) :], call.args, strict=False)
    for name, value in [*placed, *((each.arg or "", each.value) for each in call.keywords)]:
        if _reads(facts, (file, value), dependent):
            yield f"{function.name}:{name}"


def _names(facts: TraceIndex, file: str, target: ast.AST) -> Iterator[str]:
    """Yields the names that a target of an assignment sets; of an item, the name of what holds it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Tuple | ast.List | ast.Starred):
        for each in ast.iter_child_nodes(target):
            yield from _names(facts, file, each)
    elif isinstance(target, ast.Name | ast.Attribute):
        yield _key(facts, file, target)


def _key(facts: TraceIndex, file: str, node: ast.Name | ast.Attribute) -> str:
    """Returns a name with the function that it is a variable of."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    around = parent_of(facts, file, node)
    while around is not None:
        if isinstance(around, _Function) and node.id in _variables(around):
            return f"{getattr(around, 'name', '')}:{node.id}"
        around = parent_of(facts, file, around)
    return node.id


@lru_cache(maxsize=1024)
def _variables(function: _Function) -> set[str]:
    nodes = list(ast.walk(function))
    others = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    given = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    return given | {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - others


def _reads(facts: TraceIndex, at: _Node, dependent: set[str]) -> bool:
    read = (node for node in ast.walk(at[1]) if isinstance(node, ast.Name | ast.Attribute))
    return any(_key(facts, at[0], node) in dependent for node in read if isinstance(node.ctx, ast.Load))


def _parts(facts: TraceIndex, cause: Span) -> list[_Node]:
    """Returns what gives a rate: the line, the conditions around it, and the functions that these name."""
    found: list[_Node] = []
    around: ast.AST | None = statement_around(facts, cause)
    while around is not None and not isinstance(around, _Function):
        if isinstance(around, ast.If):
            found.append((cause.file, around.test))
        elif isinstance(around, ast.Assign | ast.AugAssign | ast.Expr | ast.Return):
            found += [(cause.file, each) for each in _values(around)]
        around = parent_of(facts, cause.file, around)
    functions = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree)
                 if isinstance(node, ast.FunctionDef)]  # fmt: skip
    for _, part in found:
        named = {last_name(node) for node in ast.walk(part) if isinstance(node, ast.Name | ast.Attribute)}
        new = [each for each in functions if each[1].name in named and each not in found]
        found += new if len(found) < _MAX_PARTS else []
    return found


def _values(statement: ast.Assign | ast.AugAssign | ast.Expr | ast.Return) -> Iterator[ast.expr]:
    """Yields the values of a statement; of a call, what it gets: a scheduler, without its optimizer."""
    value = statement.value
    if not isinstance(value, ast.Call) or not last_name(value.func).endswith("LR"):
        yield from () if value is None else (value,)
        return
    yield from (*value.args[1:], *(each.value for each in value.keywords if each.arg != "optimizer"))
