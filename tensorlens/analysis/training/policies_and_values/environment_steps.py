"""Reads the `step()` of an environment that the program defines: the time that it shows, and ends that never come."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import called_name, last_name


def names_in(node: ast.AST) -> set[str]:
    """Returns the names and attributes in a part of the source."""
    return {last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}


def stored_in(target: ast.expr) -> list[str]:
    """Lists the names of a target."""
    return [last_name(node) for node in ast.walk(target) if isinstance(node, ast.Name)]


def is_always_false(tree: ast.AST, flag: str) -> bool:
    """Returns whether a `step()` has only the constant False at the place of a flag that a line gets from it."""
    places = {
        place
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call)
        if "step" in called_name(node.value)
        for place, target in enumerate(node.targets[0].elts)
        if isinstance(target, ast.Name) and target.id == flag
    }
    steps = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.endswith("step")]
    returned = [(step, list(_returned(step))) for step in steps]
    return any(
        rows and all(len(row.elts) > place and _is_false(step, row.elts[place]) for row in rows)
        for step, rows in returned
        for place in places
    )


def _returned(step: ast.FunctionDef) -> Iterator[ast.Tuple]:
    for node in ast.walk(step):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            yield node.value


def _is_false(step: ast.FunctionDef, value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value in (False, 0)
    if not isinstance(value, ast.Name):
        return False
    stores = [node for node in ast.walk(step) if isinstance(node, ast.Name) and node.id == value.id]
    given = [
        each.value
        for each in ast.walk(step)
        if isinstance(each, ast.Assign) and any(target in stores for target in each.targets)
    ]
    written = sum(isinstance(node.ctx, ast.Store) for node in stores)
    only = given[0] if len(given) == written == 1 else None
    return isinstance(only, ast.Constant) and only.value in (False, 0)


def has_clock(tree: ast.AST) -> bool:
    """Returns whether an environment shows its time: what a method with a time limit compares is read elsewhere."""
    for holder in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        methods = [node for node in holder.body if isinstance(node, ast.FunctionDef)]
        compared = {
            node.attr
            for method in methods
            if method.name == "step"
            for each in ast.walk(method)
            if isinstance(each, ast.Compare)
            for node in ast.walk(each.left)
            if isinstance(node, ast.Attribute)
        }
        clocks = {name for name in compared if re.fullmatch(r"_?(t|time|steps?|elapsed|count|age|clock|ticks?)", name)}
        observing = [method for method in methods if re.search("obs|state|feature", method.name)]
        returned = [node for m in methods if m.name == "step" for node in ast.walk(m) if isinstance(node, ast.Return)]
        if any(clocks & names_in(each) for each in (*observing, *returned)):
            observed = [each for each in (*observing, *returned) if clocks & names_in(each)]
            if any(clocks & _uncompared(each) for each in observed):
                return True
    return False


def _uncompared(node: ast.AST) -> set[str]:
    compared = {id(part) for each in ast.walk(node) if isinstance(each, ast.Compare) for part in ast.walk(each)}
    return {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and id(each) not in compared}
