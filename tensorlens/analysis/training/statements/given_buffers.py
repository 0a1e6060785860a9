"""Finds the buffers of a class whose first value its caller gives."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import called_name

_COPIES = frozenset("clone detach to float contiguous as_tensor tensor from_numpy".split())


def given_buffers(holder: ast.ClassDef) -> set[str]:
    """Returns the buffers whose first value the caller gives: it may be what is known of other data, and stay so."""
    found = set[str]()
    for method in (node for node in holder.body if isinstance(node, ast.FunctionDef)):
        arguments = {each.arg for each in (*method.args.args, *method.args.kwonlyargs)} - {"self"}
        for node in ast.walk(method):
            if isinstance(node, ast.Call) and called_name(node) == "register_buffer" and len(node.args) > 1:
                name, value = node.args[:2]
                is_given = isinstance(value, ast.Name | ast.Attribute) or called_name(value) in _COPIES
                if is_given and isinstance(name, ast.Constant) and not arguments.isdisjoint(_names(value)):
                    found.add(str(name.value))
    return found


def _names(value: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
