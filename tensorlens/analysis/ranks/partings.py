"""Finds the `if`, `for` or `while` after which one rank ran a line and another rank another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.records.model import Span, Trace
from tensorlens.records.source import tree_of

_JUMPS = (ast.Continue, ast.Break, ast.Return, ast.Raise)
_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Delete, ast.Pass)


def parting(trace: Trace, before: Span | None, first: Span, second: Span) -> tuple[str, Span | None]:
    """Returns the statement that parts two lines, as a word and the place of its condition: an `if` that has one line
    in one of its branches and not the other, an `if` that jumps past one of them, or the loop that one rank left.

    `before` is the last line that both ranks ran.
    """
    tree = tree_of(trace.sources.get(second.file, ""))
    if tree is None or first.file != second.file:
        return "", None
    lines = first.line, second.line
    test = _innermost_if(tree, lines)
    if test is not None:
        return "if", _span(second.file, test, test)
    if before is None or before.file != first.file:
        return "", None
    test = next(filter(None, (_jump(tree, before.line, *pair) for pair in (lines, lines[::-1]))), None)
    if test is not None:
        return "if", _span(second.file, test, test)
    loop = _left_loop(tree, before.line, lines)
    if isinstance(loop, ast.While):
        return "while", _span(second.file, loop.test, loop.test)
    return ("", None) if loop is None else ("for", _span(second.file, loop.target, loop.iter))


def _innermost_if(tree: ast.Module, lines: tuple[int, int]) -> ast.expr | None:
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            sides = [_side(node, line) for line in lines]
            if sides[0] != sides[1] and (found is None or node.lineno > found.lineno):
                found = node
    return None if found is None else found.test


def _side(node: ast.If, line: int) -> str:
    for name, body in (("body", node.body), ("orelse", node.orelse)):
        if _has(body, line):
            return name
    return ""


def _jump(tree: ast.Module, before: int, after: int, elsewhere: int) -> ast.expr | None:
    """Returns the condition of the `if` between the lines `before` and `after` of one block, if it jumps away from
    there and no other statement between them decides what runs next."""
    for block in _blocks(tree):
        places = [next((n for n, each in enumerate(block) if _has([each], line)), None) for line in (before, after)]
        start, end = places
        if start is None or end is None or start >= end:
            continue
        between = [each for each in block[start + 1 : end] if not isinstance(each, _PLAIN)]
        if len(between) == 1 and isinstance(between[0], ast.If) and isinstance(between[0].body[-1], _JUMPS):
            is_past = not _has(block[start + 1 : end + 1], elsewhere)
            return between[0].test if is_past and not between[0].orelse else None
    return None


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _left_loop(tree: ast.Module, before: int, lines: tuple[int, int]) -> ast.For | ast.While | None:
    """Returns the innermost loop that has the line before in it, and one of the two lines."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While) and _has(node.body, before):
            if _has(node.body, lines[0]) != _has(node.body, lines[1]) and (found is None or node.lineno > found.lineno):
                found = node
    return found


def _has(block: list[ast.stmt], line: int) -> bool:
    return bool(block) and block[0].lineno <= line <= (block[-1].end_lineno or block[-1].lineno)


def _span(file: str, first: ast.expr, last: ast.expr) -> Span:
    end = last.end_lineno or last.lineno
    return Span(file, first.lineno, first.col_offset, end, last.end_col_offset or 0)
