"""Finds out whether an `if` compares a computed value with the best one so far, and replaces that one by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex

_STORING = ("append", "insert", "update", "setdefault")  # methods of collections
_PLAIN = ("range", "len", "enumerate", "next", "time", "perf_counter", "get", "pop")  # functions that measure no model
_READING = ("item", "detach", "float", "cpu", "mean", "tolist")  # the same value in another form
_DEPTH = 4


def keeps_best(facts: TraceIndex, file: str, choice: ast.If) -> bool:
    """Returns whether statements below an `if` replace what its test compares by the other side of the comparison, or
    put that into what they keep, and whether the other side is computed, as a loss is and a counter is not."""
    pairs = [pair for statement in choice.body for pair in stored_pairs(statement)]
    targets = {name for target, _ in pairs if (name := plain_name(target))}
    tests = [node for node in ast.walk(choice.test) if isinstance(node, ast.Compare)]
    orders = [node for node in tests if all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)]
    given = {ast.unparse(_read(part)) for _, value in pairs for part in _parts(value)}
    for node in orders:
        inner = {part: plain_name(part) for part in ast.walk(node) if isinstance(part, ast.expr)}
        if not targets & set(inner.values()):
            continue
        for part in (part for part in inner if isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Subscript)):
            other = _read(part)
            is_other = plain_name(other) not in {*targets, "self"} and ast.unparse(other) in given
            if is_other and is_computed(facts, file, other, _DEPTH):
                return True
    return False


def compares_with(facts: TraceIndex, file: str, test: ast.expr, record: ast.expr) -> bool:
    """Returns whether a test compares a computed value that a record contains with another one by its size."""
    given = {ast.unparse(_read(part)) for part in _parts(record)}
    for node in (node for node in ast.walk(test) if isinstance(node, ast.Compare)):
        sides = [_read(side) for side in (node.left, *node.comparators)]
        inside = [side for side in sides if ast.unparse(side) in given]
        is_order = all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
        if is_order and len(sides) == 2 and len(inside) == 1 and is_computed(facts, file, inside[0], _DEPTH):
            return True
    return False


def has_computed(facts: TraceIndex, file: str, parts: list[ast.expr]) -> bool:
    """Returns whether a call computes one of some parts of a record."""
    return any(is_computed(facts, file, part, _DEPTH) for part in parts)


def stored_pairs(statement: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields what a statement assigns to what, also `best, low = model, loss`, or what it puts into a collection."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _STORING:
        yield call.func.value, call


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yields a value, and those that it is made of, as a tuple, a dict or a record."""
    yield value
    if isinstance(value, ast.Tuple | ast.List):
        inner = value.elts
    elif isinstance(value, ast.Dict):
        inner = value.values
    elif isinstance(value, ast.Call):
        inner = [*value.args, *(each.value for each in value.keywords)]
    else:
        inner = []
    for each in inner:
        yield from _parts(each)


def _read(value: ast.expr) -> ast.expr:
    """Returns the value that `loss.item()` or `float(loss)` reads."""
    while isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in _READING and not value.args:
            value = value.func.value
        elif isinstance(value.func, ast.Name) and value.func.id in _READING and len(value.args) == 1:
            value = value.args[0]
        else:
            break
    return value


def is_computed(facts: TraceIndex, file: str, value: ast.expr, depth: int) -> bool:
    """Returns whether a call computes a value: there, where its name is set, or where its function is given it."""
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    if depth == 0 or any(last_name(call.func) in _PLAIN for call in calls):
        return False
    if calls:
        return True
    tree, name = facts.tree(file), plain_name(value)
    nodes = list(ast.walk(tree))
    sets = [node for node in nodes if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)]
    around = function_around(facts, file, value.lineno)
    names = [] if around is None else [each.arg for each in around.args.args]
    if around is not None and name in names:
        place = names.index(name) - (names[0] in ("self", "cls"))
        given = (
            ([each.value for each in node.keywords if each.arg == name] or node.args[place : place + 1])
            for node in nodes
            if isinstance(node, ast.Call) and last_name(node.func) == around.name
        )
        return any(is_computed(facts, file, each, depth - 1) for found in given for each in found)
    for node in sets:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        bound = {plain_name(part) for target in targets for part in ast.walk(target) if isinstance(part, ast.expr)}
        if name and name in bound and node.value is not None and function_around(facts, file, node.lineno) is around:
            if is_computed(facts, file, node.value, depth - 1):
                return True
    if isinstance(value, ast.BinOp | ast.UnaryOp):
        inner = [value.left, value.right] if isinstance(value, ast.BinOp) else [value.operand]
        return any(is_computed(facts, file, each, depth - 1) for each in inner)
    return isinstance(value, ast.Subscript) and is_computed(facts, file, value.value, depth - 1)
