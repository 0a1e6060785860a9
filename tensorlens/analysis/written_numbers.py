"""Reads the number that an expression of the script is, where the source alone says it: `-1e9`, `FILL`, `-math.inf`."""

from __future__ import annotations

import ast
import math

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex

_WITH_INF = frozenset(("math", "torch", "np", "numpy"))
_LARGEST = 3.4028234663852886e38  # of float32
_LIMITS = {"min": -_LARGEST, "max": _LARGEST}


def written_number(facts: TraceIndex, node: ast.expr | None) -> float | None:
    """Returns the number; of a name or an attribute, if one line of the program sets it, and sets it to a number.

    Of `torch.finfo(x.dtype).min`, it is that of float32.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = written_number(facts, node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Name | ast.Attribute) and _of_library(node) is None:
        node = only_value(facts, _named(node))
    return _number(node)


def _number(node: ast.expr | None) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Attribute):
        return _of_library(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float" and node.args:
        node = node.args[0]
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        return float(text) if text.strip("+-").lower() in ("inf", "infinity", "nan") else _number(node)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        try:
            return float(node.value)  # type: ignore[arg-type]
        except OverflowError:
            return None
    return None


def _of_library(node: ast.expr) -> float | None:
    """Returns the number that `math.inf`, `torch.inf` or `torch.finfo(dtype).min` is."""
    if not isinstance(node, ast.Attribute):
        return None
    if node.attr == "inf" and isinstance(node.value, ast.Name) and node.value.id in _WITH_INF:
        return math.inf
    holder = node.value
    is_limit = isinstance(holder, ast.Call) and called_name(holder) == "finfo"
    return _LIMITS.get(node.attr) if is_limit else None


def only_value(facts: TraceIndex, name: str) -> ast.expr | None:
    """Returns what the only place of the program that binds a name, or sets an attribute of that name, sets it to."""
    values: list[ast.expr | None] = []
    bound = 0
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values += [node.value for target in targets if _named(target) == name]
        bound += isinstance(node, ast.arg | ast.keyword) and node.arg == name
        bound += _named(node) == name and not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    return values[0] if len(values) == bound == 1 else None


def _named(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
