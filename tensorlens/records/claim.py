"""The frozen record of a checked claim: all of the model that the process of a checked script needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import NonNegative, Positive


@dataclass(frozen=True, slots=True)
class Claim:
    """A checked `#:` line."""

    id: str | None  # "000-5", or None for a claim that mirrors no documented statement
    check: str
    line: Positive
    expected: Literal["holds", "refuted"]
    verdict: Literal["holds", "refuted", "not reached"]
    condition: str  # the text after "if": when the verdict is so; "" if always
    values: tuple[tuple[str, str], ...]  # (expression, value seen), e.g. ("a.grad.tolist()", "[2.0, 2.0, 2.0]")
    error: str = ""  # the check itself raised
    changed: str = ""  # what the check changed in the script, which a check must not: "sets a.grad"
    round: NonNegative = 0  # in which pass of a loop the claim failed first; 0 outside loops

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected and not self.changed


def condition_text(verdict: str, condition: str, statement: str = "") -> str:
    """When a statement has this verdict, in words: a statement that says "may" asks for one case only."""
    if not condition:
        return ""
    if verdict == "refuted":
        return f"false when {condition}"
    return f"it does when {condition}" if says_may(statement) else f"only if {condition}"


def says_may(statement: str) -> bool:
    """Whether one run in which it happens is enough for the statement, and no run can refute it."""
    return " may " in f" {statement} "
