"""Finds out from the source whether a script computes with the scale of its `GradScaler`, besides by the scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import only_value

_KEYS = frozenset(("scale", "_scale", "get_scale"))  # in `scaler.state_dict()`, and names for `getattr()`
_INIT = "init_scale"
_FIRST = 65536.0  # of PyTorch


def uses_scale(facts: TraceIndex) -> bool:
    """Returns whether a script reads the scale for more than to print it, or uses the number that it is made with."""
    return any(_reads_scale(tree) for _, tree in facts.trees()) or _uses_first_scale(facts)


def _reads_scale(tree: ast.AST) -> bool:
    waiting = [tree]
    for node in waiting:
        if isinstance(node, ast.Attribute) and node.attr in ("get_scale", "_scale"):
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _KEYS:
            return True
        is_printed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if not is_printed and not isinstance(node, ast.JoinedStr):
            waiting += ast.iter_child_nodes(node)
    return False


def _uses_first_scale(facts: TraceIndex) -> bool:
    """Returns whether a scaler begins with 1, or its first scale, or the name of it, is in another place, too."""
    given = list(_first_scales(facts))
    numbers, names, own = set[float](), set[str](), set[ast.AST]()
    for value in given:
        inner = value
        if isinstance(inner, ast.Name | ast.Attribute):
            names.add(last_name(inner))
            inner = only_value(facts, last_name(inner)) or inner
        own |= {*ast.walk(value), *ast.walk(inner)}
        number = _number(inner)
        numbers |= set() if number is None else {number}
    numbers |= set() if given else {_FIRST}
    if 1.0 in numbers:
        return True
    own |= {part for each in _given_back(facts) for part in ast.walk(each)}
    others = (node for _, tree in facts.trees() for node in ast.walk(tree) if node not in own)
    return any(_is_read(node, names) or (isinstance(node, ast.expr) and _number(node) in numbers) for node in others)


def _first_scales(facts: TraceIndex) -> Iterator[ast.expr]:
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and last_name(node.func) == "GradScaler":
            yield from (each.value for each in node.keywords if each.arg == _INIT)


def _given_back(facts: TraceIndex) -> Iterator[ast.expr]:
    """Yields the new scales of `scaler.update(scale)`."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and last_name(node.func) == "update":
            yield from (*node.args, *(each.value for each in node.keywords))


def _is_read(node: ast.AST, names: set[str]) -> bool:
    is_loaded = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    return is_loaded and last_name(node) in names


def _number(node: ast.expr) -> float | None:
    """Returns the number that an expression of constants is, such as `2.0**16`."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = _number(node.left), _number(node.right)
        is_small = base is not None and power is not None and 0 < base <= 16 and abs(power) <= 64
        return base**power if is_small and base is not None and power is not None else None
    return None
