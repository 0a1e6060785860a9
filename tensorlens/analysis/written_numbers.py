"""Reads the number that an expression of the script is, where the source alone says it: `-1e9`, `FILL`."""

from __future__ import annotations

import ast

from tensorlens.analysis.trace_index import TraceIndex


def written_number(facts: TraceIndex, node: ast.expr | None) -> float | None:
    """Returns the number; of a name or an attribute, if one line of the program sets it, and sets it to a number."""
    if isinstance(node, ast.Name | ast.Attribute):
        node = only_value(facts, _named(node))
    return _number(node)


def _number(node: ast.expr | None) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
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
