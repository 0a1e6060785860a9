"""Finds the layer with `inplace=True` that wrote into a tensor, where a module with layers is assigned."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import class_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


def inplace_layer(facts: TraceIndex, call: Call, inside: bool) -> tuple[ast.Call, str, int] | None:
    """Finds the layer with `inplace=True` that wrote, in the assignment that made the module.

    It is the layer that the module begins with, with its depth in there (0: the module itself), or, if the write was to
    a result of the module's own, the only later layer of a `Sequential` that fits, with its position. The module is
    assigned once: an attribute in the class whose method the line is in, or a name. The layer's name is that of the op:
    `ReLU` for `relu_`.
    """
    site = facts.trace.sites[call.site]
    node, span = facts.names.syntax.node(site.span), site.span
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return None
    owner = ast.unparse(node.func)
    scope = class_around(facts, span.file, span.line) if owner.startswith("self.") else facts.tree(span.file)
    assigned = [
        each.value
        for each in (() if scope is None else ast.walk(scope))
        if isinstance(each, ast.Assign) and any(ast.unparse(target) == owner for target in each.targets)
    ]
    if len(assigned) != 1 or not isinstance(assigned[0], ast.Call):
        return None
    first, depth = assigned[0], 0
    op = call.op.rpartition(".")[2].strip("_").replace("_", "")
    if inside:
        layers = first.args if ast.unparse(first.func).endswith("Sequential") else []
        fitting = [(n, each) for n, each in enumerate(layers) if n and _writes_in_place(each, op)]
        plain = len(fitting) == 1 and isinstance(fitting[0][1], ast.Call)
        flat = not any(isinstance(each, ast.Starred) for each in layers)
        return (fitting[0][1], span.file, fitting[0][0]) if plain and flat else None  # type: ignore[return-value]
    while ast.unparse(first.func).endswith("Sequential") and first.args and isinstance(first.args[0], ast.Call):
        first, depth = first.args[0], depth + 1
    return (first, span.file, depth) if _writes_in_place(first, op) else None


def is_called_for_its_write(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a line calls the module of a call and throws the result away: it needs the write."""
    span = facts.trace.sites[call.site].span
    node = facts.names.syntax.node(span)
    owner = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return any(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and ast.unparse(each.value.func) == owner
        for each in ast.walk(facts.tree(span.file))
    )


def _writes_in_place(layer: ast.expr, op: str) -> bool:
    """Returns whether code such as `nn.ReLU(inplace=True)` makes the layer that calls `op` in place."""
    if not isinstance(layer, ast.Call) or ast.unparse(layer.func).rpartition(".")[2].lower() != op:
        return False
    return any(k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value for k in layer.keywords)
