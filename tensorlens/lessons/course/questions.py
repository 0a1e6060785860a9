"""Turns the claims of a lesson into quiz questions, with the answers that the run gave. Imports no torch."""

from __future__ import annotations

import ast
import io
import math
import tokenize
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim
from tensorlens.records.source import lines_of, tree_of

Kind = Literal["verdict", "value", "ending"]
DONT_KNOW = "?"
_VERDICTS = {
    **dict.fromkeys(("h", "holds", "y", "yes", "t", "true"), "holds"),
    **dict.fromkeys(("r", "refuted", "n", "no", "f", "false"), "refuted"),
}
_ENDINGS = {
    **dict.fromkeys(("e", "error", "raises", "fails"), "error"),
    **dict.fromkeys(("r", "runs", "ok"), "runs"),
}
_INVERSE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a claim. The script is shown up to line `last`."""

    claim: Claim
    first: int  # the statement that the claim follows
    last: int
    kind: Kind
    text: str  # the expression in question; for `kind` "ending" a statement of the lesson
    answer: str  # "holds", "refuted", "error", "runs", or the value that the run printed

    @property
    def prompt(self) -> str:
        """Returns the question; its last line says what kind of answer it wants."""
        plain = self.text.replace(".tolist()", "").replace(".item()", "")
        how = {"verdict": "holds or refuted?", "value": f"{plain} = ?", "ending": "runs or error?"}
        which = (
            "which values, with a comma between them?" if isinstance(_literal(self.answer), tuple) else "which value?"
        )
        return f"{which if self.kind == 'value' else self.text}\n{how[self.kind]}"

    @property
    def measured(self) -> str:
        """Returns the answer as a sentence."""
        if self.kind == "value":
            return f"{self.text} is {self.answer}"
        words = {"holds": "holds", "refuted": "is refuted", "error": "raises an error", "runs": "runs"}
        return f"{self.text} {words[self.answer]}"

    def read(self, typed: str) -> str:
        """Reads what was typed as an answer to this question.

        Raises:
            ValueError: it is not an answer; the text says what to write.
        """
        text = " ".join(typed.split())
        if text == DONT_KNOW:
            return text
        if self.kind == "value":
            if _literal(text) is _NO_VALUE:
                raise ValueError("write a Python value, such as [2.0, 2.0], 3, True or None; ? if you don't know")
            right, typed_value = _literal(self.answer), _literal(text)
            if isinstance(right, tuple) and not (isinstance(typed_value, tuple) and len(typed_value) == len(right)):
                raise ValueError(f"write {len(right)} values with a comma between them; ? if you don't know")
            return text
        known = _VERDICTS if self.kind == "verdict" else _ENDINGS
        if text.lower() not in known:
            words = "holds or refuted (h or r)" if self.kind == "verdict" else "runs or error (r or e)"
            raise ValueError(f"write {words}; ? if you don't know")
        return known[text.lower()]

    def is_right(self, answer: str) -> bool:
        """Returns whether an answer, as `read` returns it, agrees with the run."""
        if self.kind != "value" or answer == DONT_KNOW:
            return answer == self.answer
        return _alike(_literal(answer), _literal(self.answer))


def questions(source: str, checked: Sequence[Claim]) -> tuple[Question, ...]:
    """Makes a question of each claim that the run reached, and of equal claims about one statement only one."""
    places = claim_syntax.followed(source)
    asked: dict[tuple[int, str], Question] = {}
    for claim in checked:
        if claim.verdict != "not reached" and not claim.error and claim.line in places:
            question = _question(source, claim, *places[claim.line])
            asked.setdefault((question.first, question.kind if question.kind == "ending" else claim.check), question)
    return tuple(asked.values())


def _question(source: str, claim: Claim, first: int, last: int) -> Question:
    if claim.check.startswith("raises "):
        statement = " ".join(line.strip() for line in lines_of(source)[first - 1 : last])
        return Question(claim, first, last, "ending", statement, "error" if claim.verdict == "holds" else "runs")
    value = _value_asked(claim)
    if value is not None:
        return Question(claim, first, last, "value", *value)
    negated = _negated(claim)
    if negated:
        opposite = "refuted" if claim.verdict == "holds" else "holds"
        return Question(claim, first, last, "verdict", negated, opposite)
    return Question(claim, first, last, "verdict", claim.check, claim.verdict)


def _value_asked(claim: Claim) -> tuple[str, str] | None:
    """Returns the left side of an equality such as `a.grad.tolist() == [2.0, 2.0]`, and the value that was seen."""
    node = _expression(claim.check)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        parts = [_equal_to(part, claim) for part in node.values]
        pairs = [pair for pair in parts if pair is not None]
        if len(pairs) < len(parts):
            return None
        asked, seen = (", ".join(each) for each in zip(*pairs, strict=True))
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and (pair := _equal_to(node, claim)):
        asked, seen = pair
    else:
        return None
    return (asked, seen) if _is_short(_literal(seen)) else None


def _equal_to(node: ast.expr, claim: Claim) -> tuple[str, str] | None:
    """Returns the left side of `a == 2` or `a is None`, and the value that was seen; None for other comparisons."""
    if not isinstance(node, ast.Compare) or isinstance(node.left, ast.Constant):
        return None
    right = ast.unparse(node.comparators[-1])
    same = all(isinstance(op, ast.Eq) or (isinstance(op, ast.Is) and right == "None") for op in node.ops)
    if not same or _literal(right) is _NO_VALUE:
        return None
    asked = ast.unparse(node.left)
    seen = dict(claim.values).get(asked, right if claim.verdict == "holds" else "")
    return (asked, seen) if seen else None  # Python does not evaluate the parts of an `and` after a false one


def _is_short(value: object) -> bool:
    """Returns whether a value is easy to type and to work out: a number of few digits, True, False, None, or a short
    list of them."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and len(str(value)) <= 60 and all(map(_is_short, value))
    if isinstance(value, float):
        return round(value, 1) == value
    return value is None or isinstance(value, bool | int)


def _negated(claim: Claim) -> str:
    """Returns the negated check for about half of the claims without an id, "" for the others. Without it, most answers
    would be "holds"."""
    node = _expression(claim.check)
    if claim.id or node is None or zlib.crc32(f"{claim.line} {claim.check}".encode()) % 2:
        return ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _INVERSE:
        return ast.unparse(ast.Compare(node.left, [_INVERSE[type(node.ops[0])]()], node.comparators))
    return f"not {claim.check}" if isinstance(node, ast.Attribute | ast.Name) else ""


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


_NO_VALUE = object()


def _literal(text: str) -> object:
    try:
        value: object = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return _NO_VALUE
    return value


def _alike(one: object, other: object) -> bool:
    """Returns whether values are equal, with numbers rounded, and a tuple equal to a list."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-2, abs_tol=5e-4)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other


def without_comments(source: str) -> tuple[str, ...]:
    """Returns the lines of a script without comments, claims and docstring, which would answer the quiz."""
    lines = list(lines_of(source))
    for row, column in _comment_places(source):
        lines[row - 1] = lines[row - 1][:column].rstrip()
    tree = tree_of(source)
    body = tree.body if tree is not None and ast.get_docstring(tree) is not None else []
    for row in range(body[0].lineno, (body[0].end_lineno or 0) + 1) if body else ():
        lines[row - 1] = ""
    return tuple(lines)


def _comment_places(source: str) -> list[tuple[int, int]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [token.start for token in tokens if token.type == tokenize.COMMENT]
