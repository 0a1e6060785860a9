"""Finds the statements that a run skipped: handlers of errors that were not raised, lines after one that raised, and
branches that were not taken. Imports no torch."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tensorlens.records.model import Failure, Trace

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that a line of the module raised. `type` is its class name. If not `caught`, it ended the script."""

    line: int
    type: str
    caught: bool
    direct: bool  # the line itself raised it, not a function of the script that it called


def raised_in(trace: Trace, file: str) -> tuple[Raised, ...]:
    """Returns the exceptions of a run, with the lines of the module `file` that raised them."""
    raised = (_raised(trace, failure, file) for failure in trace.failures)
    return tuple(each for each in raised if each is not None)


def _raised(trace: Trace, failure: Failure, file: str) -> Raised | None:
    sites = [trace.sites[site] for site in failure.stack]
    at = [n for n, site in enumerate(sites) if site.span.file == file and site.function == "<module>"]
    if not at:
        return None
    direct = at[-1] == len(sites) - 1
    return Raised(sites[at[-1]].span.line, failure.type.rpartition(".")[2], failure.caught, direct)


def skipped_lines(tree: ast.Module, raised: Sequence[Raised], known: Collection[int]) -> set[int]:
    """Returns the lines of statements that did not run, as far as the trace shows it. The lines in `known` did run."""
    skipped: set[int] = set()
    for statement, loop in _statements(tree.body, None):
        if isinstance(statement, ast.Try):
            skipped |= _of_try(statement, raised, known, loop is not None)
        elif isinstance(statement, ast.If):
            skipped |= _untouched([statement.body, statement.orelse], known)
        elif isinstance(statement, ast.Match):
            skipped |= _untouched([case.body for case in statement.cases], known)
    for error in raised:
        if not error.caught:
            skipped |= set(range(_end_of_loop(tree, error.line) + 1, _last(tree.body) + 1))
    return skipped - set(known)


def _statements(body: list[ast.stmt], loop: ast.stmt | None) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """Yields the statements of the module, each with the outermost loop around it."""
    for statement in body:
        if isinstance(statement, _SCOPES):
            continue
        yield statement, loop
        inner = loop or (statement if isinstance(statement, _LOOPS) else None)
        for block in _blocks(statement):
            yield from _statements(block, inner)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _of_try(statement: ast.Try, raised: Sequence[Raised], known: Collection[int], repeated: bool) -> set[int]:
    """Returns the lines of a `try` that did not run. In a loop one iteration may raise and another not."""
    body = _lines(statement.body)
    inside = [error for error in raised if error.line in body]
    skipped: set[int] = set()
    for handler in statement.handlers:
        if not any(_may_catch(handler, error) for error in inside):
            skipped |= _untouched([handler.body], known)
    certain = [error.line for error in inside if error.caught and error.direct and _is_plain(statement, error.line)]
    if certain and not repeated:
        skipped |= {line for line in body if line > _last_of(statement.body, certain[-1])} | _lines(statement.orelse)
    return skipped


def _may_catch(handler: ast.ExceptHandler, error: Raised) -> bool:
    """Returns whether a handler may catch an exception. An unknown class may be a base class, so it counts."""
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(handler.type) if isinstance(node, ast.Attribute)}
    known = {"Exception", "BaseException", "RuntimeError", "ValueError", "TypeError", "IndexError"}
    return error.type in names or bool(names & {"Exception", "BaseException"}) or not names & known


def _is_plain(statement: ast.Try, line: int) -> bool:
    """Returns whether an exception at `line` is sure to leave the body of a `try`: the line is in no inner block."""
    return any(
        part.lineno <= line <= (part.end_lineno or 0) and not getattr(part, "body", None) for part in statement.body
    )


def _untouched(blocks: Sequence[list[ast.stmt]], known: Collection[int]) -> set[int]:
    """Returns the lines of the blocks that contain no line of `known`."""
    candidates = (_lines(block) for block in blocks)
    return set[int]().union(*(lines for lines in candidates if not lines.intersection(known)))


def _lines(body: list[ast.stmt]) -> set[int]:
    return set(range(body[0].lineno, _last(body) + 1)) if body else set()


def _last(body: list[ast.stmt]) -> int:
    return max((statement.end_lineno or 0 for statement in body), default=0)


def _last_of(body: list[ast.stmt], line: int) -> int:
    """Returns the last line of the statement of `body` that contains `line`."""
    return next((part.end_lineno or line for part in body if part.lineno <= line <= (part.end_lineno or 0)), line)


def _end_of_loop(tree: ast.Module, line: int) -> int:
    """Returns the last line that may have run before an exception at `line`: that of its outermost loop, if any, else
    that of its statement."""
    for statement, loop in _statements(tree.body, None):
        if statement.lineno <= line <= (statement.end_lineno or 0) and not any(_blocks(statement)):
            return (loop or statement).end_lineno or line
    return line
