"""The `#:` lines of a script: claims that are checked while it runs. Imports no torch; the checking is the tracer's.

A claim is a comment line after a statement, in the statement's block:

    #: a.grad is None                                     must be true
    #: [000-2] holds: a.data_ptr() == b.data_ptr()        a documented statement, and the verdict recorded for it
    #: [000-3] refuted if nothing saved it: CHECK         the verdict depends: when it is so
    #: raises RuntimeError                                the statement before it ends in this exception
    #: [004-6] holds: raises RuntimeError: does not require grad

A claim whose expression is not complete goes on in the next `#:` line.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tensorlens.errors import UsageError
from tensorlens.source import tree_of

_TAG = re.compile(
    r"(?:\[(?P<id>[\w.-]+)\]\s*)?(?P<verdict>holds|refuted)\b(?:\s+(?:only\s+)?if\s+(?P<when>[^:]+?))?\s*:\s*"
)
_RAISES = re.compile(r"raises\s+(?P<type>[A-Za-z_][\w.]*)\s*(?::\s*(?P<message>.*))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClaimSpec:
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
        return None if found is None else (found["type"], (found["message"] or "").strip())


# --- reading --------------------------------------------------------------------------------------------------------


def parse(source: str) -> tuple[ClaimSpec, ...]:
    """The claims of a source text, in order; none if the text is not Python, which running it will say.

    Raises:
        UsageError: a claim that is not a Python expression, or that follows no statement of its block.
    """
    tree = tree_of(source)
    if tree is None:
        return ()
    specs = tuple(_spec(line, column, text) for line, column, text in _joined(_comments(source)))
    for spec in specs:
        _anchor(tree.body, spec)
    return specs


def followed(source: str) -> dict[int, tuple[int, int]]:
    """The first and the last line of the statement that each claim follows, by the line of the claim."""
    tree = tree_of(source)
    found = {} if tree is None else {spec.line: _anchor(tree.body, spec) for spec in parse(source)}
    return {line: (statement.lineno, statement.end_lineno or statement.lineno) for line, statement in found.items()}


def _comments(source: str) -> Iterator[tuple[int, int, str]]:
    """(line, column, text after `#:`) of each comment that stands on a line of its own."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            alone = token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
            if alone and token.string.startswith("#:"):
                yield token.start[0], token.start[1], token.string[2:].strip()
    except (tokenize.TokenError, SyntaxError):
        return


def _joined(comments: Iterator[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Claims that go on over several lines, as one."""
    held: tuple[int, int, str] | None = None
    last = 0
    for line, column, text in comments:
        if held is not None and (line, column) == (last + 1, held[1]) and not _complete(held[2]):
            held = (*held[:2], f"{held[2]} {text}")
        else:
            if held is not None:
                yield held
            held = (line, column, text)
        last = line
    if held is not None:
        yield held


def _complete(text: str) -> bool:
    check = _TAG.sub("", text, count=1) if _TAG.match(text) else text
    if _RAISES.match(check):
        return True
    try:
        ast.parse(check, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _spec(line: int, column: int, text: str) -> ClaimSpec:
    tag = _TAG.match(text)
    check = text[tag.end() :].strip() if tag else text
    if not _complete(check):
        raise UsageError(f"line {line}: this claim is not a Python expression: {text}")
    if not tag:
        return ClaimSpec(line, column, check)
    expected: Literal["holds", "refuted"] = "refuted" if tag["verdict"] == "refuted" else "holds"
    return ClaimSpec(line, column, check, tag["id"], expected, (tag["when"] or "").strip())


# --- placing --------------------------------------------------------------------------------------------------------


def instrument(source: str | bytes, filename: str, specs: tuple[ClaimSpec, ...], call: str) -> ast.Module:
    """The parsed script with its claims checked on the way; every node of its own keeps its place.

    After the statement that a claim follows stands `call(NUMBER)`. A statement that claims say raises is put into a
    `try` that calls `call(NUMBER, True)` and raises on, or `call(NUMBER, False)` where nothing was raised.

    Raises:
        SyntaxError: the script is not Python.
        UsageError: a claim follows no statement of its block.
    """
    tree = ast.parse(source, filename)
    following: dict[ast.stmt, list[int]] = defaultdict(list)
    for number, spec in enumerate(specs):
        following[_anchor(tree.body, spec)].append(number)
    for block in [block for node in ast.walk(tree) for block in _blocks(node)]:
        block[:] = [new for old in block for new in _checked(old, following.get(old, []), specs, call)]
    return tree


def _anchor(block: list[ast.stmt], spec: ClaimSpec) -> ast.stmt:
    """The statement that a claim follows: the last one before it in the block that its indentation puts it in."""
    before = [statement for statement in block if statement.lineno < spec.line]
    if before and block[0].col_offset == spec.column and (before[-1].end_lineno or 0) < spec.line:
        position = len(before)
        while position < len(block) and _is_future(block[position]):
            position += 1
        return block[position - 1]
    inner = [body for body in _blocks(before[-1], deep=True) if body[0].lineno < spec.line] if before else []
    if not inner or spec.column <= block[0].col_offset:
        raise UsageError(f"line {spec.line}: this claim follows no statement of its block: {spec.check}")
    return _anchor(max(inner, key=lambda body: body[0].lineno), spec)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _blocks(node: ast.AST, deep: bool = False) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a node; `deep`: also those of its handlers and cases."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    if deep:
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield part.body


def _checked(statement: ast.stmt, numbers: list[int], specs: tuple[ClaimSpec, ...], call: str) -> list[ast.stmt]:
    """The statement with the calls that check the claims after it."""
    raising = [number for number in numbers if specs[number].raises]
    others = [_call_at(statement, call, number) for number in numbers if not specs[number].raises]
    if not raising:
        return [statement, *others]
    caught = [_call_at(statement, call, number, True) for number in raising]
    handler = ast.ExceptHandler(None, None, [*caught, ast.Raise(None, None)])
    guarded = ast.Try([statement], [handler], [_call_at(statement, call, n, False) for n in raising], [])
    for node in (guarded, handler, handler.body[-1]):
        ast.copy_location(node, statement)
    return [guarded, *others]


def _call_at(statement: ast.stmt, call: str, *arguments: int | bool) -> ast.stmt:
    """`call(*arguments)` as a statement on the last line of `statement`."""
    values: list[ast.expr] = [ast.Constant(value) for value in arguments]
    made = ast.Expr(ast.Call(ast.Name(call, ast.Load()), values, []))
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt):
            node.lineno = node.end_lineno = statement.end_lineno or statement.lineno
            node.col_offset = node.end_col_offset = statement.end_col_offset or 0
    return made
