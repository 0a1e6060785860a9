"""Finds which saved tensors and attributes of its context the source of a custom `backward` reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_FORM = frozenset("shape dtype device ndim size dim numel requires_grad layout".split())


def read_slots(backward: ast.FunctionDef, slots: Iterable[int]) -> list[int]:
    """Returns those of some slots of `ctx.saved_tensors` whose values `backward` shows that it reads."""
    whole = {node.targets[0].id for node in ast.walk(backward) if isinstance(node, ast.Assign)
             and isinstance(node.targets[0], ast.Name) and _is_saved(node.value, backward, set())}  # fmt: skip
    read, names = _read_names(backward), dict[int, str]()
    found = set[int]()
    for node in ast.walk(backward):
        if isinstance(node, ast.Subscript) and _is_saved(node.value, backward, whole):
            found |= {node.slice.value} if _is_number(node.slice) else set()  # type: ignore[attr-defined]
        if isinstance(node, ast.Assign) and _is_saved(node.value, backward, whole):
            for target in node.targets:
                names |= _by_slot(target)
    return [slot for slot in slots if slot in found or names.get(slot) in read]


def read_attributes(backward: ast.FunctionDef, names: Iterable[str]) -> list[str]:
    """Returns those of some attributes of the context whose values `backward` reads."""
    form = _of_form(backward)
    read = {node.attr for node in ast.walk(backward) if isinstance(node, ast.Attribute) and node not in form
            and isinstance(node.ctx, ast.Load) and _is_context(node.value, backward)}  # fmt: skip
    return [name for name in names if name in read]


def _read_names(backward: ast.FunctionDef) -> set[str]:
    form = _of_form(backward)
    names = (node for node in ast.walk(backward) if isinstance(node, ast.Name) and node not in form)
    return {node.id for node in names if isinstance(node.ctx, ast.Load)}


def _of_form(backward: ast.FunctionDef) -> set[ast.AST]:
    """Returns the expressions of which only the form is read, such as the shape."""
    return {node.value for node in ast.walk(backward) if isinstance(node, ast.Attribute) and node.attr in _FORM}


def _by_slot(target: ast.expr) -> dict[int, str]:
    """Returns the names that `a, b = ctx.saved_tensors` sets; a starred one and those after it are not known."""
    names = dict[int, str]()
    for slot, each in enumerate(target.elts if isinstance(target, ast.Tuple | ast.List) else ()):
        if isinstance(each, ast.Starred):
            break
        if isinstance(each, ast.Name):
            names[slot] = each.id
    return names


def _is_saved(node: ast.expr, backward: ast.FunctionDef, whole: set[str]) -> bool:
    """Returns whether an expression is `ctx.saved_tensors`, or one of the names of it."""
    if isinstance(node, ast.Name):
        return node.id in whole
    is_saved = isinstance(node, ast.Attribute) and node.attr in ("saved_tensors", "saved_variables")
    return is_saved and _is_context(node.value, backward)  # type: ignore[attr-defined]


def _is_context(node: ast.expr, backward: ast.FunctionDef) -> bool:
    parameters = [*backward.args.posonlyargs, *backward.args.args]
    return isinstance(node, ast.Name) and bool(parameters) and node.id == parameters[0].arg


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
