"""The `#:` lines of a script: claims that are checked while it runs. Imports no torch; the checking is the tracer's.

A claim is a comment line after a statement, in the statement's block:

    #: a.grad is None                                     must be true
    #: [000-2] holds: a.data_ptr() == b.data_ptr()        a documented statement, and the verdict recorded for it
    #: [000-3] refuted if nothing saved it: CHECK         the verdict depends: when it is so
    #: raises RuntimeError                                the script ends in this exception in the statement before
    #: [004-6] holds: raises RuntimeError: does not require grad

A line `#:` whose expression is not complete goes on in the next one.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tensorlens.errors import UsageError

_TAG = re.compile(r"\[(?P<id>[\w.-]+)\]\s*(?:(?P<verdict>holds|refuted)(?:\s+(?:only\s+)?if\s+(?P<when>[^:]+?))?\s*:)?\s*")
_RAISES = re.compile(r"raises\s+(?P<type>[A-Za-z_][\w.]*)\s*(?::\s*(?P<message>.*))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spec:
    """A claim as written: `line` is the comment's, `column` its indentation."""

    line: int
    column: int
    check: str
    id: str | None = None
    expected: Literal["holds", "refuted"] = "holds"
    condition: str = ""

    @property
    def raises(self) -> tuple[str, str] | None:
        """(exception type, part of its message) of a `raises` claim."""
        found = _RAISES.match(self.check)
        return None if found is None else (found["type"], found["message"] or "")


def parse(source: str) -> tuple[Spec, ...]:
    """The claims of a source text, in order.

    Raises:
        UsageError: a claim whose expression is not Python.
    """
    return tuple(_spec(line, column, text) for line, column, text in _joined(_comments(source)))


def _comments(source: str) -> Iterator[tuple[int, int, str]]:
    """(line, column, text after `#:`) of each comment that stands on a line of its own."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            alone = token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
            if alone and token.string.startswith("#:"):
                yield token.start[0], token.start[1], token.string[2:].strip()
    except (tokenize.TokenError, SyntaxError):
        return  # the script itself is not Python: running it says so


def _joined(comments: Iterator[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Claims that go on over several lines, as one."""
    held: tuple[int, int, str] | None = None
    last = 0
    for line, column, text in comments:
        if held is not None and line == last + 1 and not _complete(held[2]):
            held = (held[0], held[1], f"{held[2]} {text}")
        else:
            if held is not None:
                yield held
            held = (line, column, text)
        last = line
    if held is not None:
        yield held


def _complete(text: str) -> bool:
    check = _TAG.sub("", text, count=1)
    if _RAISES.match(check):
        return True
    try:
        ast.parse(check, mode="eval")
    except SyntaxError:
        return False
    return True


def _spec(line: int, column: int, text: str) -> Spec:
    tag = _TAG.match(text)
    check = text[tag.end() :].strip() if tag else text
    spec = Spec(line, column, check)
    if tag:
        expected: Literal["holds", "refuted"] = "refuted" if tag["verdict"] == "refuted" else "holds"
        spec = Spec(line, column, check, tag["id"], expected, (tag["when"] or "").strip())
    if not _complete(check):
        raise UsageError(f"line {line}: the claim is not a Python expression: {check}")
    return spec


def instrument(source: str | bytes, filename: str, specs: tuple[Spec, ...], call: str) -> ast.Module:
    """The parsed script with `call(NUMBER)` after the statement that each claim follows; nothing else moves.

    Raises:
        SyntaxError: the script is not Python.
    """
    tree = ast.parse(source, filename)
    for number, spec in reversed(list(enumerate(specs))):
        body, position = _place(tree, spec)
        body.insert(position, _checked(call, number, spec))
    return tree


def _place(tree: ast.Module, spec: Spec) -> tuple[list[ast.stmt], int]:
    """The block that a claim's indentation puts it in, and where in it."""
    best: tuple[list[ast.stmt], int] = (tree.body, len([s for s in tree.body if s.lineno < spec.line]))
    for node in ast.walk(tree):
        for body in _blocks(node):
            before = [s for s in body if (s.end_lineno or s.lineno) < spec.line]
            if not before or body[0].col_offset != spec.column:
                continue
            following = body[len(before)].lineno if len(before) < len(body) else None
            last = before[-1].end_lineno or 0
            if (following is None or following > spec.line) and last >= _last_line(best, spec):
                best = (body, len(before))
    return best


def _last_line(place: tuple[list[ast.stmt], int], spec: Spec) -> int:
    body, position = place
    return (body[position - 1].end_lineno or 0) if position else 0


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            yield handler.body


def _checked(call: str, number: int, spec: Spec) -> ast.stmt:
    name = ast.Name(call, ast.Load())
    statement = ast.Expr(ast.Call(name, [ast.Constant(number)], []))
    for node in ast.walk(statement):
        if isinstance(node, ast.expr | ast.stmt):
            node.lineno = node.end_lineno = spec.line
            node.col_offset = node.end_col_offset = spec.column
    return statement
