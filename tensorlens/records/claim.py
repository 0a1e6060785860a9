"""Records a checked claim: the only record that the process of a checked script needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import NonNegative, Positive


@dataclass(frozen=True, slots=True)
class Claim:
    """A checked `#:` line."""

    id: str | None  # "000-5"; None: the claim mirrors no documented statement
    check: str
    line: Positive
    expected: Literal["holds", "refuted"]
    verdict: Literal["holds", "refuted", "not reached"]
    condition: str  # the text after "if": when the verdict holds; "" if always
    values: tuple[tuple[str, str], ...]  # (expression, value seen), e.g. ("a.grad.tolist()", "[2.0, 2.0, 2.0]")
    error: str = ""  # the check itself raised
    changed: str = ""  # what the check changed in the script, which it must not: "sets a.grad"
    round: NonNegative = 0  # iteration of a loop in which the claim failed first; 0 outside loops

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected and not self.changed


def condition_text(verdict: str, condition: str, statement: str = "") -> str:
    """Returns the words for the condition under which a statement has this verdict; "" if there is none.

    A statement that says "may" is proven by one case, so its condition reads "it does when ...".
    """
    if not condition:
        return ""
    if verdict == "refuted":
        return f"false when {condition}"
    return f"it does when {condition}" if says_may(statement) else f"only if {condition}"


def says_may(statement: str) -> bool:
    """Returns whether a statement says "may": one run in which it happens proves it, and no run can refute it."""
    return " may " in f" {statement} "
