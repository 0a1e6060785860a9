"""Recognizes conditions that choose modules or parameters by their type or their name."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex

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


def is_optional(facts: TraceIndex, test: ast.expr | None) -> bool:
    """Returns whether a condition tests for types that the program makes under a setting, as a layer of experts is.

    Such a type is in a branch, in a dict of choices, or is the default of an argument. Its tests are none of these.
    """
    types = set() if test is None else {last_name(each) for each in _tested(test)} - {""}
    for _, tree in facts.trees() if types else ():
        tests = {id(each) for each in _tested(tree)}
        choices = (each for node in ast.walk(tree) for each in _choices(node))
        nodes = (node for choice in choices for node in ast.walk(choice))
        if any(last_name(node) in types and id(node) not in tests for node in nodes if isinstance(node, ast.expr)):
            return True
    return False


def _choices(node: ast.AST) -> list[ast.expr | ast.stmt]:
    """Returns the parts of a piece of source of which some are used."""
    if isinstance(node, ast.If):
        return [*node.body, *node.orelse]
    if isinstance(node, ast.Match):
        return [each for case in node.cases for each in case.body]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Dict | ast.BoolOp):
        return [*node.values]
    if isinstance(node, ast.arguments):
        return [each for each in (*node.defaults, *node.kw_defaults) if each is not None]
    return []


def _tested(node: ast.AST) -> list[ast.expr]:
    """Returns the types that the tests in a piece of source name."""
    given: list[ast.expr] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and called_name(each) == "isinstance":
            given += each.args[1:]
        elif isinstance(each, ast.Compare):
            given += [each.left, *each.comparators]
    return [part for each in given for part in ast.walk(each) if isinstance(part, ast.Name | ast.Attribute)]
