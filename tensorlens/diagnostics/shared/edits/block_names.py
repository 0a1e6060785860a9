"""Reads which names the statements of one block read and bind, and which statements can run again elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.variables import assigned_in, read_in

_EFFECTS = frozenset(
    "append appendleft extend insert remove pop popleft popitem clear update setdefault put get_nowait send write "
    "sort reverse discard step backward zero_grad eval train requires_grad_ load_state_dict register_buffer".split()
)
_EFFECT_FUNCTIONS = frozenset("next print input open exec eval setattr delattr".split())
_STRANGE = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Global, ast.Nonlocal, ast.Delete)


def reads(node: ast.AST) -> frozenset[str]:
    """Returns the variables that code reads. An augmented assignment reads its target."""
    targets = (each.target for each in ast.walk(node) if isinstance(each, ast.AugAssign))
    return frozenset(read_in(node) | {target.id for target in targets if isinstance(target, ast.Name)})


def binds(node: ast.AST) -> frozenset[str]:
    """Returns the variables that code binds."""
    imported = (
        alias.asname or alias.name
        for each in ast.walk(node)
        if isinstance(each, ast.Import | ast.ImportFrom)
        for alias in each.names
    )
    return frozenset(assigned_in(node) | set(imported) | set(_defined(node)))


def _defined(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name


def only_computes(statement: ast.stmt) -> bool:
    """Returns whether a statement only assigns what it computes to variables, so that it can run again.

    Functions that it calls are not looked into: see `keeps_to_itself`.
    """
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if statement.value is None or not all(map(_is_variable, targets)):
        return False
    return not any(isinstance(node, _STRANGE) or _has_effect(node) for node in ast.walk(statement))


def _is_variable(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_variable, target.elts))
    return isinstance(target, ast.Name)


def _has_effect(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return name in _EFFECTS or (name.endswith("_") and not name.endswith("__"))
    return isinstance(node.func, ast.Name) and node.func.id in _EFFECT_FUNCTIONS


def keeps_to_itself(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns whether a call of a function changes nothing but its own variables and lists."""
    own = assigned_in(function)
    for node in ast.walk(function):
        if isinstance(node, _STRANGE):
            return False
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in own):
                return False
        if isinstance(node, ast.Call) and _has_effect(node):
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            if not (isinstance(receiver, ast.Name) and receiver.id in own):
                return False
    return True


def only_parts(statement: ast.stmt, names: frozenset[str]) -> ast.stmt:
    """Returns an assignment such as `a, b = f(x), g(x)` reduced to the targets among `names`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return statement
    target, value = statement.targets[0], statement.value
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)):
        return statement
    pairs = [(t, v) for t, v in zip(target.elts, value.elts, strict=True) if binds(t) & names]
    if not pairs or any(isinstance(part, ast.Starred) for pair in pairs for part in pair):
        return statement
    if len(pairs) == 1:
        return ast.Assign([pairs[0][0]], pairs[0][1], lineno=statement.lineno)
    left, right = ast.Tuple([t for t, _ in pairs], ast.Store()), ast.Tuple([v for _, v in pairs], ast.Load())
    return ast.Assign([left], right, lineno=statement.lineno)
