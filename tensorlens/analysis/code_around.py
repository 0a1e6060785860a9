"""Finds the code around a line of the program: its statement, block, loop, function and class."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span


def statement_at(facts: TraceIndex, file: str, line: int) -> ast.stmt | None:
    """Returns the innermost statement that covers a line; of a compound statement only its head counts."""
    best: ast.stmt | None = None
    for statement in _covering(facts.tree(file), line):
        if line <= _head_end(statement) and (best is None or best.lineno <= statement.lineno):
            best = statement
    return best


def statement_around(facts: TraceIndex, span: Span) -> ast.stmt | None:
    """Returns the innermost statement that a piece of source is in."""
    lines = (each for each in _covering(facts.tree(span.file), span.line) if each.lineno <= span.line)
    around = [each for each in lines if is_inside(span, facts.span_of(each, span.file))]
    return max(around, key=lambda each: (each.lineno, each.col_offset), default=None)


def _covering(node: ast.AST, line: int) -> Iterator[ast.stmt]:
    """Yields the statements that cover a line, each after the one that it is in.

    It searches each block by bisection, because a program may have 10^5 lines.
    """
    for block in blocks_of(node):
        for place in range(bisect_left(block, line, key=_last_line), len(block)):
            if first_line(block[place]) > line:
                break
            yield block[place]
            yield from _covering(block[place], line)
    for clause in _clauses(node):
        yield from _covering(clause, line)


def _clauses(node: ast.AST) -> list[ast.AST]:
    """Returns the parts of a `try` or `match` that have blocks of their own."""
    return [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]


def _last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def is_inside(inner: Span, outer: Span) -> bool:
    begins = (outer.line, outer.column) <= (inner.line, inner.column)
    ends = (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    return inner.file == outer.file and begins and ends


def parent_of(facts: TraceIndex, file: str, node: ast.AST) -> ast.AST | None:
    """Returns the part of a file's syntax tree that a node is directly in."""
    return _parents(facts.tree(file)).get(node)


@lru_cache(maxsize=64)
def _parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def upwards(facts: TraceIndex, file: str, statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yields a statement and those around it, the innermost first."""
    node: ast.AST | None = statement
    while node is not None:
        if isinstance(node, ast.stmt):
            yield node
        node = parent_of(facts, file, node)


def block_around(facts: TraceIndex, file: str, statement: ast.stmt) -> list[ast.stmt]:
    """Returns the statements of the block that a statement is in, in order; [] if it is not in the file's tree."""
    blocks = blocks_of(parent_of(facts, file, statement) or ast.Pass())
    return next((block for block in blocks if any(each is statement for each in block)), [])


def function_around(facts: TraceIndex, file: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Returns the innermost function whose body covers a line; None: the module's own code."""
    found: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for statement in _covering(facts.tree(file), line):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.body[0].lineno <= line:
            found = statement if found is None or statement.lineno > found.lineno else found
    return found


def scope_around(facts: TraceIndex, file: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
    """Returns the innermost function whose body covers a line, or the whole file."""
    return function_around(facts, file, line) or facts.tree(file)


def class_around(facts: TraceIndex, file: str, line: int) -> ast.ClassDef | None:
    """Returns the innermost class that covers a line."""
    classes = (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.ClassDef))
    around = [node for node in classes if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(around, key=lambda node: node.lineno, default=None)


def method_of(holder: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """Returns the method of a class with a name."""
    return next((each for each in holder.body if isinstance(each, ast.FunctionDef) and each.name == name), None)


def loop_around_line(facts: TraceIndex, file: str, line: int) -> ast.For | ast.While | None:
    """Returns the innermost loop whose body covers a line, in the function around that line."""
    function = function_around(facts, file, line)
    begin = 0 if function is None else function.lineno
    loops = [
        statement
        for statement in _covering(facts.tree(file), line)
        if isinstance(statement, ast.For | ast.While)
        and begin < statement.lineno
        and statement.body[0].lineno <= line <= _last_line(statement.body[-1])
    ]
    return max(loops, key=lambda loop: loop.lineno, default=None)


def first_line(statement: ast.stmt) -> int:
    """Returns the line on which a statement begins: that of its first decorator, if it has one."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _head_end(statement: ast.stmt) -> int:
    """Returns the last line of a statement; of a compound one, the line before its body."""
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return max(statement.lineno, first_line(body[0]) - 1)
    return statement.end_lineno or statement.lineno


def statements_in(facts: TraceIndex, file: str) -> Iterator[ast.stmt]:
    """Yields all statements of a file, each after the one that it is in."""
    return (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.stmt))


def blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yields the blocks of a compound statement, or of a module: its body, its `else`, and so on."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
