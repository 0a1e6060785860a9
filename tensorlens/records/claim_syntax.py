"""Parses the `#:` lines of a script: claims that the tracer checks while the script runs. Imports no torch.

A claim is a comment line after a statement, in the statement's block:

    #: a.grad is None                                     must be true
    #: [000-2] holds: a.data_ptr() == b.data_ptr()        a documented statement, and the verdict recorded for it
    #: [000-3] refuted if nothing saved it: CHECK         the verdict holds under a condition
    #: raises RuntimeError                                the statement before it ends in this exception
    #: [004-6] holds: raises RuntimeError: does not require grad

A claim whose expression is incomplete continues on the next `#:` line. A line that looks like a claim and is none
raises a `UsageError`: a `#:` after code on its line, `# :` for `#:`, an unknown verdict, an assignment.
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
from tensorlens.records.source import tree_of

_TAG = re.compile(
    r"(?:\[(?P<id>[\w.-]+)\]\s*)?(?P<verdict>holds|refuted)\b(?:\s+(?:only\s+)?if\s+(?P<when>[^:]+?))?\s*:\s*"
)
_RAISES = re.compile(r"raises\s+(?P<type>[A-Za-z_][\w.]*)\s*(?::\s*(?P<message>.*))?$", re.DOTALL)
_ID = re.compile(r"\[[\w.-]+\]\s*")
_OTHER_VERDICT = re.compile(r"(?P<word>[A-Za-z]\w*)(?:\s+(?:only\s+)?if\s+[^:]+?)?\s*:(?!=)")


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """A claim as written, with the line of its comment and its indentation (`column`)."""

    line: int
    column: int
    check: str
    id: str | None = None
    expected: Literal["holds", "refuted"] = "holds"
    condition: str = ""

    @property
    def raises(self) -> tuple[str, str] | None:
        """The exception type and part of its message, of a `raises` claim."""
        match = _RAISES.match(self.check)
        return None if match is None else (match["type"], (match["message"] or "").strip())


# --- reading --------------------------------------------------------------------------------------------------------


def parse(source: str) -> tuple[ClaimSpec, ...]:
    """Returns the claims of a source text, in order; none if the text is not Python: running it says so.

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
    """Returns, by the line of each claim, the first and last line of the statement that the claim follows."""
    tree = tree_of(source)
    anchors = {} if tree is None else {spec.line: _anchor(tree.body, spec) for spec in parse(source)}
    return {line: (anchor.lineno, anchor.end_lineno or anchor.lineno) for line, anchor in anchors.items()}


def _comments(source: str) -> Iterator[tuple[int, int, str]]:
    """Yields (line, column, text after `#:`) of each claim comment.

    Raises:
        UsageError: a comment looks like a claim and would not be checked.
    """
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type != tokenize.COMMENT:
                continue
            (line, column), text = token.start, token.string
            alone = not token.line[:column].strip()
            if not text.startswith("#:"):
                _reject_spaced(line, text)
            elif alone:
                yield line, column, text[2:].strip()
            else:
                raise UsageError(
                    f"line {line}: a claim has a line of its own, below the code; a `#:` after code is not checked"
                )
    except (tokenize.TokenError, SyntaxError):
        return


def _reject_spaced(line: int, comment: str) -> None:
    """Raises for `# : x == 3`, which reads as a claim. Other comments may begin with a colon.

    Raises:
        UsageError: the comment reads as a claim and would not be checked.
    """
    rest = comment[1:].lstrip()
    if rest.startswith(":") and rest[1:].strip() and _complete(rest[1:].strip()):
        raise UsageError(f"line {line}: a claim begins with `#:`, without a space; `{comment[:40]}` is not checked")


def _joined(comments: Iterator[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Joins the lines of claims that continue. If a claim never becomes complete, only its first line is yielded."""
    waiting = list(comments)
    position = 0
    while position < len(waiting):
        line, column, text = waiting[position]
        end = position + 1
        whole = text
        while not _complete(whole) and end < len(waiting) and _continues(waiting[end - 1], waiting[end]):
            whole = f"{whole} {waiting[end][2]}"
            end += 1
        if _complete(whole):
            yield line, column, whole
            position = end
        else:
            yield line, column, text
            position += 1


def _continues(one: tuple[int, int, str], following: tuple[int, int, str]) -> bool:
    """Returns whether the second comment may continue the first: it is on the next line and begins no claim."""
    return following[:2] == (one[0] + 1, one[1]) and not _TAG.match(following[2])


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
        raise UsageError(f"line {line}: {_explanation(text, check)}")
    if not tag:
        return ClaimSpec(line, column, check)
    expected: Literal["holds", "refuted"] = "refuted" if tag["verdict"] == "refuted" else "holds"
    return ClaimSpec(line, column, check, tag["id"], expected, (tag["when"] or "").strip())


def _explanation(text: str, check: str) -> str:
    """Explains why the text of a claim is not an expression, and what its writer may have meant."""
    after_id = _ID.sub("", text, count=1) if _ID.match(text) else text
    other = _OTHER_VERDICT.match(after_id)
    if check == text and other and other["word"] not in ("holds", "refuted", "raises"):
        return f"no such verdict {other['word']!r}; write `holds:` or `refuted:`"
    if after_id != text and check == text and _complete(after_id):
        id_ = text.removesuffix(after_id).strip()
        return f"a claim with an id needs a verdict: write `{id_} holds: {after_id}`"
    if _assigns(check):
        return f"a claim is a question, and this is an assignment: {check}; did you mean `==`?"
    return f"this claim is not a Python expression: {text}"


def _assigns(check: str) -> bool:
    try:
        (statement,) = ast.parse(check).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(statement, ast.Assign)


# --- placing --------------------------------------------------------------------------------------------------------


def instrument(source: str | bytes, filename: str, specs: tuple[ClaimSpec, ...], call: str) -> ast.Module:
    """Parses the script and inserts calls that check its claims; its own nodes keep their positions.

    `call(NUMBER)` follows the statement of a claim. A statement with a `raises` claim is put into a `try` that calls
    `call(NUMBER, True)` and raises again, or `call(NUMBER, False)` if nothing was raised.

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
    """Returns the statement that a claim follows: the last one above it in the block with the claim's indentation.

    `from __future__` imports have to stay first, so a claim above one follows it.

    Raises:
        UsageError: no statement is above the claim in its block.
    """
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
    """Yields the blocks of a node; if `deep`, also those of its handlers and cases."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    if deep:
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield part.body


def _checked(statement: ast.stmt, numbers: list[int], specs: tuple[ClaimSpec, ...], call: str) -> list[ast.stmt]:
    """Returns the statement, and the calls that check the claims after it."""
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
    """Returns `call(*arguments)` as a statement on the last line of `statement`."""
    values: list[ast.expr] = [ast.Constant(value) for value in arguments]
    made = ast.Expr(ast.Call(ast.Name(call, ast.Load()), values, []))
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt):
            node.lineno = node.end_lineno = statement.end_lineno or statement.lineno
            node.col_offset = node.end_col_offset = statement.end_col_offset or 0
    return made
