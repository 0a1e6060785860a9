"""Finds the first line of a statement that has a block, such as `with torch.no_grad():`."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.syntax import Syntax
from tensorlens.records.model import Span


def head_of(syntax: Syntax, source: str, span: Span) -> Span:
    """Returns the part of `span` before the block, if it covers a whole `with`, `for`, `while` or `if` statement."""
    if span.end_line == span.line:
        return span
    last = _last_of_head(syntax.node(span))
    if last is None:
        return span
    end = span_of(last, source, span.file)
    closing = _closing(source, end)
    return Span(span.file, span.line, span.column, end.end_line, end.end_column + closing)


def _last_of_head(node: ast.AST | None) -> ast.expr | None:
    match node:
        case ast.With() | ast.AsyncWith():
            return node.items[-1].optional_vars or node.items[-1].context_expr
        case ast.For() | ast.AsyncFor():
            return node.iter
        case ast.While() | ast.If():
            return node.test
    return None


def _closing(source: str, end: Span) -> int:
    """Returns the number of characters up to and with the colon, if it follows the head at once."""
    lines = source.splitlines()
    rest = lines[end.end_line - 1][end.end_column :] if end.end_line <= len(lines) else ""
    return rest.index(":") + 1 if rest.lstrip(" )").startswith(":") else 0
