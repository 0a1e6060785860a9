"""Finds keys of collections that a program computes only from shapes or types, which several tensors can share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import loop_around_line, scope_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex

_READING = frozenset(("get", "setdefault"))
_SIZES = frozenset(("shape", "ndim"))
_KINDS = frozenset(("dtype", "device", "type"))
_SIZE_CALLS = frozenset("size numel dim ndimension nelement".split())
_KEEPING = frozenset("tuple str repr hash list map len sorted join format prod reversed int".split())
_CUTTING = frozenset("split rsplit rpartition".split())  # the last part of a name is that of each layer
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_DEPTH = 6


def shape_keys(facts: TraceIndex, file: str) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yields the expressions that compute, from shapes alone, the key of an item or of a call that takes one.

    Each comes with code that uses the key: a function, one that calls it, or a loop outside of all functions.
    """
    functions = _by_name(facts)
    for node in ast.walk(facts.tree(file)):
        key = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Call) and last_name(node.func) in _READING and node.args:
            key = node.args[0]
        if key is None or isinstance(key, ast.Slice | ast.Constant):
            continue
        scope: ast.AST | None = scope_around(facts, file, key.lineno)
        made = _Keys(functions, scope).source(key)
        if made is None:
            continue
        if isinstance(scope, ast.Module):
            scope = loop_around_line(facts, file, key.lineno)
        if scope is not None:
            yield made, scope
        if isinstance(scope, _Function):
            yield from ((made, each) for each in _callers(facts, file, scope))


def _callers(facts: TraceIndex, file: str, function: _Function) -> Iterator[_Function]:
    """Yields the functions of a file that call another one by its name."""
    for node in ast.walk(facts.tree(file)):
        if isinstance(node, _Function) and node is not function:
            if any(called_name(each) == function.name for each in ast.walk(node)):
                yield node


def _by_name(facts: TraceIndex) -> dict[str, _Function | None]:
    """Returns the functions and methods of the program by their names; None for a name that several have."""
    found: dict[str, _Function | None] = {}
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                found[node.name] = None if node.name in found else node
    return found


class _Keys:
    """Reads the expressions of one function."""

    def __init__(self, functions: dict[str, _Function | None], scope: ast.AST | None) -> None:
        self._functions, self._scope = functions, scope
        self._found: ast.expr | None = None

    def source(self, key: ast.expr) -> ast.expr | None:
        """Returns the expression that takes the shape for a key; None if the key may depend on something else."""
        self._found = None
        return self._found if self._is_shared(key, self._scope, 0) else None

    def _is_shared(self, node: ast.expr, scope: ast.AST | None, depth: int) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Attribute):
            self._found = node if node.attr in _SIZES else self._found
            return node.attr in _SIZES | _KINDS
        if depth > _MAX_DEPTH:
            return False
        if isinstance(node, ast.Name):
            value = _only_value(node.id, scope)
            return value is not None and self._is_shared(value, scope, depth + 1)
        if isinstance(node, ast.Call):
            return self._is_shared_call(node, scope, depth + 1)
        if isinstance(node, ast.Subscript) and called_name(node.value) in _CUTTING:
            self._found = node
            return isinstance(node.slice, ast.Constant | ast.UnaryOp)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return all(self._is_shared(each.iter, scope, depth + 1) for each in node.generators)
        parts = _parts(node)
        return bool(parts) and all(self._is_shared(each, scope, depth + 1) for each in parts)

    def _is_shared_call(self, node: ast.Call, scope: ast.AST | None, depth: int) -> bool:
        name = last_name(node.func)
        if name in _SIZE_CALLS and isinstance(node.func, ast.Attribute):
            self._found = node
            return True
        function = self._functions.get(name or "")
        if function is not None:
            returns = [each for each in ast.walk(function) if isinstance(each, ast.Return)]
            value = returns[0].value if len(returns) == 1 else None
            return value is not None and self._is_shared(value, function, depth)
        if name not in _KEEPING or node.keywords:
            return False
        own = [each for each in node.args if not (isinstance(each, ast.Name) and each.id in _KEEPING)]
        return bool(own) and all(self._is_shared(each, scope, depth) for each in own)


def _parts(node: ast.expr) -> list[ast.expr]:
    """Returns the parts of an expression that its value is put together from."""
    if isinstance(node, ast.Tuple | ast.List):
        return node.elts
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.FormattedValue | ast.Starred):
        return [node.value]
    if isinstance(node, ast.Subscript):
        return [node.value] if not isinstance(node.slice, ast.Name) else []
    return [node.left, node.right] if isinstance(node, ast.BinOp) else []


def _only_value(name: str, scope: ast.AST | None) -> ast.expr | None:
    """Returns what the only statement of a function that sets a variable sets it to."""
    nodes = list(ast.walk(scope)) if scope is not None else []
    bound = sum(isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load) for node in nodes)
    bound += sum(isinstance(node, ast.arg) and node.arg == name for node in nodes)
    values = [
        node.value
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    return values[0] if len(values) == bound == 1 else None
