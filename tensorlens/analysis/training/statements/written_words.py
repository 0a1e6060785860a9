"""Finds whether the source alone shows that an expression is a text, or a collection of some, that is not empty."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, arguments_of, calls_of, default_of
from tensorlens.analysis.written_numbers import only_value

_KEEPING = frozenset("tuple list set frozenset sorted lower".split())
_MAX_DEPTH = 6


def is_written(facts: TraceIndex, file: str, node: ast.expr | None) -> bool:
    """Returns whether it is, also of a name that is only set once, or that each call of a function gives such words."""
    return written_words(facts, file, node) is not None


def written_words(facts: TraceIndex, file: str, node: ast.expr | None, depth: int = 0) -> frozenset[str] | None:
    """Returns the texts of such an expression; None if the source does not show that it is one."""
    if node is None or depth > _MAX_DEPTH:
        return None
    if isinstance(node, ast.Constant):
        is_empty = node.value in ("", None, False)
        return None if is_empty else frozenset((node.value,) if isinstance(node.value, str) else ())
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return _all_of([written_words(facts, file, each, depth + 1) for each in node.elts])
    if isinstance(node, ast.JoinedStr):
        texts = [each.value for each in node.values if isinstance(each, ast.Constant)]
        return frozenset(map(str, texts)) if texts else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [written_words(facts, file, each, depth + 1) for each in (node.left, node.right)]
        return _all_of([each for each in sides if each is not None])
    if isinstance(node, ast.Call):
        is_keeping = getattr(node.func, "id", "") in _KEEPING and len(node.args) == 1
        return written_words(facts, file, node.args[0], depth + 1) if is_keeping else None
    if not isinstance(node, ast.Name | ast.Attribute):
        return None
    given = _given(facts, file, node) if isinstance(node, ast.Name) else None
    if given is not None:
        return _all_of([written_words(facts, file, each, depth + 1) for each in given])
    only = only_value(facts, node.id if isinstance(node, ast.Name) else node.attr)
    return written_words(facts, file, only, depth + 1)


def _all_of(parts: list[frozenset[str] | None]) -> frozenset[str] | None:
    """Returns the texts of all parts; None if there is no part, or if one is not known."""
    known = [each for each in parts if each is not None]
    return frozenset().union(*known) if known and len(known) == len(parts) else None


def _given(facts: TraceIndex, file: str, name: ast.Name) -> list[ast.expr | None] | None:
    """Returns what a loop, or the calls of the function, give for a name; None if it is no variable of these."""
    function = function_around(facts, file, name.lineno)
    scope = function or facts.tree(file)
    stored = {id(n) for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name.id and _is_stored(n)}
    loops = [node.iter for node in ast.walk(scope) if isinstance(node, ast.For) and id(node.target) in stored]
    if loops:
        return [*loops] if len(loops) == len(stored) else [None]
    if function is None or name.id not in arguments_of(function):
        return None
    calls = [] if stored else calls_of(facts, file, function) or []
    given = [argument_of(facts, file, function, call, name.id) for call in calls]
    return [default_of(function, name.id) if each is None else each for each in given]


def _is_stored(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)
