"""Finds the loop around a statement, and the statements that each iteration, or each call of a function, reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.blocks import LOOPS, Statement, jumps

_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True, slots=True)
class LoopPlace:
    """A statement of a loop's body, and the place of the body's statement around it."""

    loop: Statement
    at: int


def loop_around(statement: Statement) -> LoopPlace | None:
    """Returns the innermost loop of its function around a statement, and the place of the statement in its body."""
    below = statement
    for above in statement.around():
        if isinstance(above.node, LOOPS):
            body = body_of(above)
            if below.node in body:  # not in its `else`
                return LoopPlace(above, body.index(below.node))
        below = above
    return None


def body_of(loop: Statement) -> list[ast.stmt]:
    assert isinstance(loop.node, LOOPS)
    return loop.node.body


def steady(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a loop's body that each iteration reaches."""
    for node in body:
        yield node
        if jumps(node):
            return


def is_reached(statement: Statement) -> bool:
    """Returns whether every call of its function runs a statement: no condition is around it, no jump before it."""
    for each in (statement, *statement.around()):
        if each is not statement and not each.is_with:
            return False
        if any(map(jumps, each.block[: each.block.index(each.node)])):
            return False
    return True


def is_in_generator(statement: Statement) -> bool:
    """Returns whether the function around a statement is a generator or a coroutine, whose runs may mix."""
    function = [statement, *statement.around()][-1].above
    if function is None or isinstance(function.node, ast.ClassDef):
        return False
    waiting: list[ast.AST] = list(getattr(function.node, "body", ()))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _YIELDS):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False
