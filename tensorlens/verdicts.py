"""The frozen record of a checked claim: all of the model that the process of a checked script needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Claim:
    """A checked `#:` line."""

    id: str | None  # "000-5", or None for a claim that mirrors no documented statement
    check: str
    line: int
    expected: Literal["holds", "refuted"]
    verdict: Literal["holds", "refuted", "not reached"]
    condition: str  # the text after "if": when the verdict is so; "" if always
    values: tuple[tuple[str, str], ...]  # (expression, value seen), e.g. ("a.grad.tolist()", "[2.0, 2.0, 2.0]")
    error: str = ""  # the check itself raised

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected
