"""Checks whether the code around a choice says that it does double Q-learning, and no other code takes its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.naming.variables import assigned_in
from tensorlens.analysis.trace_index import TraceIndex

_DOUBLE = re.compile(r"double[\s_-]*(deep|dueling)?[\s_-]*d*q(?!u)", re.IGNORECASE)
_OPTION = re.compile("double|ddqn", re.IGNORECASE)
_NEGATED = re.compile(r"\b(no|not|non|never|without|vanilla|plain|instead|than|unlike)\b", re.IGNORECASE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef


def is_double(facts: TraceIndex, site: int) -> bool:
    """Returns whether the function, the class or the script around says it, and no condition of the file chooses."""
    node, span = facts.node_at(site), facts.span(site)
    if node is None or span is None or _is_alternative(facts, span.file, node):
        return False
    tree = facts.tree(span.file)
    if any(_OPTION.search(word) for word in _option_words(tree)):
        return False
    words = list(_words_around(facts, span.file, node))
    return any(map(_DOUBLE.search, words)) and not any(map(_NEGATED.search, words))


def _is_alternative(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    """Returns whether a branch that a node is in ends the function, or another branch assigns what it does."""
    inner, above = node, parent_of(facts, file, node)
    while above is not None and not isinstance(above, _Definition):
        if isinstance(above, ast.IfExp | ast.Match):
            return True
        if isinstance(above, ast.If):
            branch, other = (above.body, above.orelse) if inner in above.body else (above.orelse, above.body)
            is_same = bool(assigned_in(*branch) & assigned_in(*other))
            if is_same or any(isinstance(each, ast.Return) for each in branch[-1:]):
                return True
        inner, above = above, parent_of(facts, file, above)
    return False


def _option_words(tree: ast.Module) -> Iterator[str]:
    """Yields the words of all conditions, and the names that are False."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from _words(node.test)
        elif isinstance(node, ast.Match):
            yield from _words(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is False:
            yield from _words(*node.targets)
        elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is False:
            yield node.arg or ""


def _words_around(facts: TraceIndex, file: str, node: ast.AST) -> Iterator[str]:
    """Yields the names and strings of the function that a node is in, or of the script outside of all functions.

    Of a class it yields the name and the docstring only, as other methods may do the other kind of learning.
    """
    above: ast.AST | None = node
    while above is not None and not isinstance(above, _Function):
        above = parent_of(facts, file, above)
    if above is None:
        yield from _words(*(each for each in facts.tree(file).body if not isinstance(each, _Definition)))
        return
    yield from _words(above)
    while above is not None:
        if isinstance(above, _Definition):
            yield above.name
            yield ast.get_docstring(above) or ""
        above = parent_of(facts, file, above)


def _words(*nodes: ast.AST) -> Iterator[str]:
    for node in (each for part in nodes for each in ast.walk(part)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
