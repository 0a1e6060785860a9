"""Lists the variables that a piece of code reads, those that it assigns to, and those that a function owns."""

from __future__ import annotations

import ast


def read_in(*code: ast.AST) -> set[str]:
    return {node.id for node in _names(code) if isinstance(node.ctx, ast.Load)}


def assigned_in(*code: ast.AST) -> set[str]:
    """Returns the variables that code gives a value or deletes."""
    return {node.id for node in _names(code) if not isinstance(node.ctx, ast.Load)}


def owned_by(function: ast.AST | None) -> set[str]:
    """Returns the arguments of a function, and the variables that it assigns to."""
    if function is None:
        return set()
    return assigned_in(function) | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def _names(code: tuple[ast.AST, ...]) -> list[ast.Name]:
    return [node for each in code for node in ast.walk(each) if isinstance(node, ast.Name)]
