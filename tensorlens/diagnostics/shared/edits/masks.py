"""Replaces a mask that a module writes into its parameter through `.data` by a product where the parameter is used."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import class_around, function_around, method_of, statement_at
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.naming.variables import assigned_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import without_statement
from tensorlens.records.model import Span
from tensorlens.records.report import Edit


def masked_where_used(facts: TraceIndex, place: Span) -> tuple[Edit, ...] | None:
    """Leaves out `self.weight.data.mul_(self.mask)`, and computes with `self.weight * self.mask` below it.

    None if the method assigns to one of the two in between, or if only the branch with the write sets the mask.
    """
    statement, function = statement_at(facts, place.file, place.line), function_around(facts, place.file, place.line)
    parts = _written(statement)
    if statement is None or function is None or parts is None:
        return None
    owner, mask = parts
    removed = without_statement(facts, place.file, place.line)
    uses = [node for node in ast.walk(function) if isinstance(node, ast.expr) and ast.unparse(node) == owner]
    below = [node for node in uses if node.lineno > (statement.end_lineno or 0)]
    loaded = [node for node in below if isinstance(getattr(node, "ctx", None), ast.Load)]
    around = {id(node.value): node for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    if removed is None or not loaded or len(loaded) != len(below) or any(id(node) in around for node in loaded):
        return None
    if not _is_always_set(facts, place, function, statement, mask):
        return None
    arguments = _arguments(function)
    texts = [f"{owner} * {mask}" if id(node) in arguments else f"({owner} * {mask})" for node in loaded]
    edits = (Edit(facts.span_of(node, place.file), text) for node, text in zip(loaded, texts, strict=True))
    return removed, *edits


def _written(statement: ast.stmt | None) -> tuple[str, str] | None:
    """Returns (`self.weight`, `self.mask`) for `self.weight.data.mul_(self.mask)`, also written with `*=`."""
    target: ast.expr | None = None
    factor: ast.expr | None = None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Mult):
        target, factor = statement.target, statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "mul_"
            and len(call.args) == 1
            and not call.keywords
        ):
            target, factor = call.func.value, call.args[0]
    if not isinstance(target, ast.Attribute) or target.attr != "data" or factor is None:
        return None
    owner, mask = plain_name(target.value), plain_name(factor)
    return None if owner is None or mask is None else (owner, mask)


def _arguments(function: ast.AST) -> set[int]:
    """Returns the expressions that are arguments of a call: there a product needs no brackets."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    return {id(each) for call in calls for each in (*call.args, *(keyword.value for keyword in call.keywords))}


def _is_always_set(facts: TraceIndex, place: Span, function: ast.AST, write: ast.stmt, mask: str) -> bool:
    """Returns whether the mask exists, and is the same, wherever the method goes on below the write."""
    root, _, name = mask.rpartition(".")
    below = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node.lineno > write.lineno]
    if any(
        mask in map(ast.unparse, getattr(node, "targets", ())) or (root or name) in assigned_in(node) for node in below
    ):
        return False
    if any(each is write for each in getattr(function, "body", ())):
        return True  # not in a branch: what sets the mask runs before the write
    return root == "self" and _is_made_at_start(facts, place, name)


def _is_made_at_start(facts: TraceIndex, place: Span, name: str) -> bool:
    """Returns whether the constructor of the class around a line sets an attribute, or registers a buffer so named."""
    kind = class_around(facts, place.file, place.line)
    start = None if kind is None else method_of(kind, "__init__")
    return start is not None and any(_sets(node, name) for node in start.body if not hasattr(node, "body"))


def _sets(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Assign):
        return any(ast.unparse(target) == f"self.{name}" for target in statement.targets)
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_registered = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    if not is_registered or not isinstance(call, ast.Call) or not call.args:
        return False
    method, first = ast.unparse(call.func), call.args[0]
    return method.startswith("self.register_") and isinstance(first, ast.Constant) and first.value == name
