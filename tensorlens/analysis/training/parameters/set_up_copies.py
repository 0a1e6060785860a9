"""Finds out whether the program sets an attribute of a copied module that the module's methods read.

Such a copy is a view of one module with another setting, as `view = copy.copy(net)` and `view.heat = 2`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_set_up(facts: TraceIndex, file: str, statement: ast.stmt) -> bool:
    """Returns whether lines set such an attribute of what a statement keeps, or of the copy that it copies again."""
    read, scope = set(_read_by_methods(facts)), scope_around(facts, file, statement.lineno)
    names = _names(scope, statement)
    return any(owner in names and attribute in read for owner, attribute in _settings(scope))


def _names(scope: ast.AST, statement: ast.stmt) -> set[str]:
    """Returns the code that means what a statement keeps: its targets, the last of a list, and names of a loop."""
    targets = {ast.unparse(each) for each in statement.targets} if isinstance(statement, ast.Assign) else set()
    call = statement.value if isinstance(statement, ast.Expr) else None
    kept_in = (
        {ast.unparse(call.func.value)} if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else set()
    )
    kept_in |= {target.partition("[")[0] for target in targets if "[" in target}
    copied = {ast.unparse(node.args[0]) for node in ast.walk(statement) if isinstance(node, ast.Call) and node.args}
    made = (node for node in ast.walk(scope) if isinstance(node, ast.Assign) and called_name(node.value) == "copy")
    again = copied & {ast.unparse(target) for node in made for target in node.targets}
    loops = (node for node in ast.walk(scope) if isinstance(node, ast.For | ast.comprehension))
    inside = {
        each.id
        for loop in loops
        if any(ast.unparse(node) in kept_in for node in ast.walk(loop.iter) if isinstance(node, ast.expr))
        for each in ast.walk(loop.target)
        if isinstance(each, ast.Name)
    }
    return targets | again | inside | {f"{each}[-1]" for each in kept_in}


def _settings(scope: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields the attributes that a scope sets, each as the code of its object and its name."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield ast.unparse(node.value), node.attr
        elif isinstance(node, ast.Call) and called_name(node) == "setattr" and len(node.args) == 3:
            if isinstance(node.args[1], ast.Constant):
                yield ast.unparse(node.args[0]), str(node.args[1].value)


def _read_by_methods(facts: TraceIndex) -> Iterator[str]:
    """Yields the attributes that methods read of their own object, except those that set it up."""
    classes = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    methods = (
        each for node in classes for each in node.body if isinstance(each, _Function) and each.name != "__init__"
    )
    for node in (node for method in methods for node in ast.walk(method)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            if node.value.id == "self":
                yield node.attr
