"""Recognizes conditions that choose modules or parameters by their type or their name."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import called_name

_BY_NAME = ("isinstance", "endswith", "startswith", "hasattr", "match", "search", "fullmatch")
_COMPARING = ast.In | ast.NotIn | ast.Eq | ast.NotEq | ast.Is
_Comprehension = ast.GeneratorExp | ast.ListComp


def chooses(test: ast.expr) -> bool:
    """Returns whether a condition is one of the type or the name of a module or parameter."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return all(
        (isinstance(part, ast.Call) and (called_name(part) in _BY_NAME or _chooses_any(part)))
        or (isinstance(part, ast.Compare) and isinstance(part.ops[0], _COMPARING) and _has_text(part))
        for part in parts
    )


def _chooses_any(test: ast.Call) -> bool:
    """Returns whether a condition is one of several words, as `any(word in name for word in ("a", "b"))`."""
    terms = test.args[0] if called_name(test) == "any" and test.args else None
    return isinstance(terms, _Comprehension) and _are_words(terms.generators[0].iter)


def _are_words(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return bool(parts) and all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in parts)


def _has_text(test: ast.Compare) -> bool:
    nodes = (test.left, *test.comparators)
    return any(_are_words(node) or (isinstance(node, ast.Call) and called_name(node) == "type") for node in nodes)
