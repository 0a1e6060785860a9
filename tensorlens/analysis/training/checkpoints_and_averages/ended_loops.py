"""Finds out from the source whether a loop may end right after the statements below an `if`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import block_around, function_around, upwards
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import stored_pairs

_LEAVING = ast.Return | ast.Break | ast.Raise
_Loop = ast.For | ast.While


def may_end_loop(facts: TraceIndex, file: str, choice: ast.If, loops: list[_Loop], is_inside: bool) -> bool:
    """Returns whether statements below an `if` leave a loop, or set what the end of the loop asks for.

    `loops`: the loop around the `if`, or those that call its function. A count that begins at 0 again ends no loop.
    """
    if is_inside and any(_leaves(facts, file, choice)):
        return True
    set_here, function = _set(choice), None if is_inside else function_around(facts, file, choice.lineno)
    asked = [test for loop in loops for test in _asked(loop, choice)]
    if any(_reads(test, set_here) for test in asked):
        return True
    if function is None or not any(_is_given(loop, asked, function.name) for loop in loops):
        return False
    returned = [each.value for node in choice.body for each in ast.walk(node) if isinstance(each, ast.Return)]
    results = [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None]
    tests = [*results, *_asked(function, choice)]
    return not all(map(_is_false, returned)) or any(_reads(each, set_here) for each in tests)


def _leaves(facts: TraceIndex, file: str, choice: ast.If) -> Iterator[bool]:
    """Yields whether the body of an `if`, or a block around it, has a statement that leaves the loop."""
    yield any(isinstance(each, _LEAVING) for node in choice.body for each in ast.walk(node))
    for statement in upwards(facts, file, choice):
        block = block_around(facts, file, statement)
        later = block[next(place for place, each in enumerate(block) if each is statement) + 1 :]
        yield any(isinstance(each, _LEAVING) for each in later)
        if isinstance(statement, _Loop):
            return


def _set(choice: ast.If) -> set[str]:
    """Returns the names that the body of an `if` sets to more than a constant such as 0, False or None."""
    nodes = [node for each in choice.body for node in ast.walk(each)]
    found = {last_name(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    found |= {last_name(target) for node in nodes for target, value in stored_pairs(node) if not _is_false(value)}
    return found - {""}


def _is_false(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _asked(root: ast.AST, choice: ast.If) -> list[ast.expr]:
    """Returns the tests that decide whether a loop, or a function, ends: those of other `if`s, and of a `while`."""
    tests = [root.test] if isinstance(root, ast.While) else []
    for node in ast.walk(root):
        if isinstance(node, ast.If) and node is not choice:
            if any(isinstance(each, _LEAVING) for each in (*node.body, *node.orelse)):
                tests.append(node.test)
    return tests


def _reads(test: ast.expr, names: set[str]) -> bool:
    """Returns whether a test reads one of some names, but not as in `epoch - best_epoch`, which is 0 then."""
    nodes = list(ast.walk(test))
    since = [node.right for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)]
    return any(last_name(node) in names for node in nodes if node not in since)


def _is_given(loop: _Loop, asked: Iterable[ast.expr], function: str) -> bool:
    """Returns whether a test asks for the result of a function, also by a name that it is given to."""
    results = {
        last_name(target)
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign) and any(called_name(each) == function for each in ast.walk(node.value))
        for target in node.targets
    } - {""}
    return any(called_name(node) == function or last_name(node) in results for test in asked for node in ast.walk(test))
