"""Finds the number that an expression of the program has in each run, if the source says it in one place.

It follows names to the only literal that is assigned to them: variables, arguments with their defaults and what calls
give for them, attributes of `self` and fields of a class, and the defaults of command-line options.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex

_MOST = 12  # names that are followed for one number
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Seen = frozenset[str]  # attributes and names that are being followed


def number_of(facts: TraceIndex, file: str, node: ast.expr) -> float | None:
    """Returns the number that an expression is; None if it is none, varies, or can't be found."""
    found = _values(facts, file, node, frozenset())
    return next(iter(found)) if found is not None and len(found) == 1 else None


def numbers_of(facts: TraceIndex, file: str, node: ast.expr) -> set[float] | None:
    """Returns all numbers that an expression is, in one object or the other; None if it varies, or can't be found."""
    return _values(facts, file, node, frozenset()) or None


def _values(facts: TraceIndex, file: str, node: ast.expr, seen: _Seen) -> set[float] | None:
    if isinstance(node, ast.Constant):
        is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        return {float(node.value)} if is_number else None  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = _values(facts, file, node.operand, seen)
        return None if found is None else {-value for value in found}
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _of_operation(facts, file, node, seen)
    if isinstance(node, ast.Name):
        return _of_name(facts, file, node, seen)
    if isinstance(node, ast.Attribute):
        return _of_attribute(facts, node.attr, seen)
    return None


def _of_operation(facts: TraceIndex, file: str, node: ast.BinOp, seen: _Seen) -> set[float] | None:
    left = _values(facts, file, node.left, seen)
    right = _values(facts, file, node.right, seen)
    if left is None or right is None or (isinstance(node.op, ast.Div) and 0.0 in right):
        return None
    return {_OPERATIONS[type(node.op)](one, other) for one in left for other in right}


def _of_name(facts: TraceIndex, file: str, node: ast.Name, seen: _Seen) -> set[float] | None:
    tree, place = facts.tree(file), f"{file}:{node.lineno}:{node.id}"
    if place in seen or len(seen) >= _MOST or _is_of_lambda(tree, node):
        return None
    seen |= {place}
    function = _around(tree, node)
    if function is not None:
        if any(each.arg == node.id for each in _arguments(function)):
            return None if _assigned(function, node.id) else _of_argument(facts, function, node.id, seen)
        values = _assigned(function, node.id)
        if values:
            return _all(facts, file, values, seen)
    body = [each for each in tree.body if not isinstance(each, _Function | ast.ClassDef)]
    values = [value for each in body for value in _assigned(each, node.id)]
    return _all(facts, file, values, seen) if values else None


def _of_argument(facts: TraceIndex, function: _Function, name: str, seen: _Seen) -> set[float] | None:
    """Returns the values that calls of a function give for an argument, its default among them if a call gives none."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    defaults |= {
        each.arg: value
        for each, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if value is not None
    }
    home = next(file for file, tree in facts.trees() if function in ast.walk(tree))
    holder = _holder(facts.tree(home), function)
    called = holder.name if holder is not None and function.name == "__init__" else function.name
    place = names.index(name) - (holder is not None) if name in names else None
    found: set[float] = set()
    for file, tree in facts.trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == called):
            if any(isinstance(each, ast.Starred) for each in call.args) or any(
                each.arg is None for each in call.keywords
            ):
                return None
            named = [keyword.value for keyword in call.keywords if keyword.arg == name]
            placed = call.args[place : place + 1] if place is not None else []
            given = next(iter((*named, *placed)), defaults.get(name))
            values = None if given is None else _values(facts, file if named or placed else home, given, seen)
            if values is None:
                return None
            found |= values
    return found


def _of_attribute(facts: TraceIndex, name: str, seen: _Seen) -> set[float] | None:
    """Returns the values of an attribute that one class has, or a command-line option. One that is found by way of
    itself, as in `self.decay = config.decay`, adds none."""
    if name in seen:
        return set()
    seen |= {name}
    found: list[tuple[str, ast.expr]] = []
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _sets_by_name(node, name):
                return None
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                given = [value for each, value in _given(node) if isinstance(each, ast.Attribute) and each.attr == name]
                if given and isinstance(node, ast.AugAssign):
                    return None
                found += [(file, value) for value in given]
            if isinstance(node, ast.ClassDef):
                found += [(file, value) for value in _fields(node, name)]
            elif isinstance(node, ast.Call) and called_name(node) == "add_argument":
                found += [(file, value) for value in _default(node, name)]
            elif isinstance(node, ast.Call) and any(keyword.arg == name for keyword in node.keywords):
                found += [(file, keyword.value) for keyword in node.keywords if keyword.arg == name]
    values = [_values(facts, file, value, seen) for file, value in found]
    known = [each for each in values if each is not None]
    return set().union(*known) if values and len(known) == len(values) else None


def _sets_by_name(call: ast.Call, name: str) -> bool:
    """Returns whether a call may set an attribute whose name is a text: `setattr(config, "rate", 0.1)`, a `**` with it,
    or arguments that a program gives to its own parser."""
    texts = {node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text.split("=")[0].lstrip("-").replace("-", "_") for text in texts}
    is_setter = called_name(call) in ("setattr", "parse_args", "parse_known_args", "update", "set_defaults")
    return name in names and (is_setter or any(keyword.arg is None for keyword in call.keywords))


def _fields(holder: ast.ClassDef, name: str) -> Iterator[ast.expr]:
    for each in holder.body:
        target: ast.expr | None = each.target if isinstance(each, ast.AnnAssign) else None
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            target = each.targets[0]
        if isinstance(target, ast.Name) and target.id == name and isinstance(each, ast.Assign | ast.AnnAssign):
            if each.value is not None:
                yield each.value


def _default(call: ast.Call, name: str) -> Iterator[ast.expr]:
    flags = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if any(flag.lstrip("-").replace("-", "_") == name for flag in flags):
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "default")


def _all(facts: TraceIndex, file: str, nodes: list[ast.expr], seen: _Seen) -> set[float] | None:
    values = [_values(facts, file, node, seen) for node in nodes]
    known = [each for each in values if each is not None]
    return set().union(*known) if len(known) == len(values) else None


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """Returns what is assigned to a name in a part of the program; a value that varies is an expression, too."""
    found: list[ast.expr] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            found.append(node)  # replaced below if the assignment is a plain one
    for node in ast.walk(scope):
        for target, value in _given(node) if isinstance(node, ast.Assign) and len(node.targets) == 1 else ():
            if target in found:
                found[found.index(target)] = value
    return found


def _given(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields the targets of an assignment, each with its value: of `a, b = 1, 2` each of the two."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, node.value or target
            continue
        values = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else []
        is_paired = len(values) == len(target.elts) and not any(
            isinstance(each, ast.Starred) for each in (*values, *target.elts)
        )
        yield from (
            zip(target.elts, values, strict=True) if is_paired else ((each, node.value or each) for each in target.elts)
        )


def _is_of_lambda(tree: ast.Module, node: ast.Name) -> bool:
    """Returns whether a name is an argument of a lambda around it."""
    around = (
        each for each in ast.walk(tree) if isinstance(each, ast.Lambda) and any(n is node for n in ast.walk(each))
    )
    return any(isinstance(n, ast.arg) and n.arg == node.id for each in around for n in ast.walk(each.args))


def _around(tree: ast.Module, node: ast.AST) -> _Function | None:
    functions = [
        each for each in ast.walk(tree) if isinstance(each, _Function) and any(n is node for n in ast.walk(each))
    ]
    return max(functions, key=lambda each: each.lineno, default=None)


def _holder(tree: ast.Module, function: _Function) -> ast.ClassDef | None:
    return next((each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and function in each.body), None)


def _arguments(function: _Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
