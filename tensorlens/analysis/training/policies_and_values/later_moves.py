"""Finds lines that give a copy of a model new values and have not run yet, as those of every thousandth step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, loop_around_line, parent_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex

_LOADING = frozenset(("load_state_dict", "update_parameters", "load_parameters", "set_weights"))
_WRITING = frozenset("copy_ lerp_ mul_ set_ swap_tensors _foreach_lerp_ _foreach_copy_ _foreach_mul_".split())
_OTHERS = re.compile(r"updat|sync|copy|polyak|soft|hard|ema|averag|track|refresh|blend", re.IGNORECASE)
_OPTIMIZER = re.compile(r"Adam|SGD|RMSprop|Adagrad|optim|Lion|Rprop", re.IGNORECASE)


def moves_later(facts: TraceIndex, copies: set[str], originals: set[str]) -> bool:
    """Returns whether a line that did not run may give the copies new values. The names are those of the models."""
    ran = _lines(facts)
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call | ast.Assign | ast.AugAssign):
                continue
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any((file, line) in ran for line in lines) or not _moves(facts, file, node, (copies, originals)):
                continue
            function = function_around(facts, file, node.lineno)
            if function is None or function.name.startswith("__") or function.name in _used(facts):
                return True
    return False


def is_copied_for_a_round(facts: TraceIndex, copied: int, original: int) -> bool:
    """Returns whether a copy is made at a site in a loop, or in a function that makes an optimizer for a model that it
    is given, as the model of the round before in fitted Q iteration."""
    span = facts.span(copied)
    if span is None:
        return False
    if loop_around_line(facts, span.file, span.line) is not None:
        return True
    function = function_around(facts, span.file, span.line)
    if function is None or function.name == "__init__" or not function.args.args:
        return False
    made = facts.creator(original)
    sites = [] if made is None else [facts.span(site) for site in facts.call_chain(made.site)]
    is_made_here = any(
        each is not None and each.file == span.file and function_around(facts, each.file, each.line) is function
        for each in sites
    )
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return not is_made_here and any(_OPTIMIZER.search(ast.unparse(each.func)) for each in calls)


def _lines(facts: TraceIndex) -> set[tuple[str, int]]:
    """Returns the lines of the calls that ran, and of those that called their functions."""
    spans = (site.span for site in facts.trace.sites if site.span is not None)
    return {(span.file, line) for span in spans for line in range(span.line, span.end_line + 1)}


def _moves(facts: TraceIndex, file: str, node: ast.AST, names: tuple[set[str], set[str]]) -> bool:
    copies, originals = names
    if not isinstance(node, ast.Call):
        return any(isinstance(each, ast.Attribute) and each.attr == "data" for each in _targets(node))
    name, receiver = called_name(node), node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in _LOADING:
        return last_name(receiver) not in originals
    if name in _WRITING or (name == "add_" and ".data." in ast.unparse(node.func)):
        return True
    if name == "deepcopy":
        around = parent_of(facts, file, node)
        return not isinstance(around, ast.Assign) or any(last_name(each) in copies for each in around.targets)
    given = [receiver, *node.args, *(each.value for each in node.keywords)]
    return bool(_OTHERS.search(name)) and any(last_name(each) in copies for each in given)


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        yield from node.targets
    elif isinstance(node, ast.AugAssign):
        yield node.target


def _used(facts: TraceIndex) -> set[str]:
    """Returns the names that the program reads: a function without one of them is never called."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return {last_name(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}
