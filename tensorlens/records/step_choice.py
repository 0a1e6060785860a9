"""Describes which training steps a run records, and reads that from the command line or from `trace()`."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepChoice:
    """Chooses training steps: every `every`-th, or those from `first` to `last`. The first step is always recorded."""

    every: int | None = None
    first: int = 1
    last: int | None = None

    def has(self, step: int) -> bool:
        """Returns whether a step is recorded. Steps count from 1."""
        if step == 1:
            return True
        if self.every is not None:
            return step % self.every == 0
        return step >= self.first and (self.last is None or step <= self.last)

    def next_after(self, step: int) -> float:
        """Returns the first step after this one that is recorded; infinity: none is."""
        if self.every is not None:
            return step - step % self.every + self.every
        following = max(step + 1, self.first)
        return following if self.last is None or following <= self.last else math.inf


def every_from(value: object) -> int:
    """Reads the N of `every=N`.

    Raises:
        ValueError: it is no whole number from 1 on.
    """
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ValueError(f"every takes a whole number from 1 on, such as 100, not {text!r}")
    return int(text)


def steps_from(value: object) -> tuple[int, int | None]:
    """Reads a range of steps: "5:8", "5:", ":8", "5", or a pair. Both ends are in it.

    Raises:
        ValueError: it is no range of steps.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        parts = ["" if part is None else str(part) for part in value]
    else:
        first, colon, last = str(value).partition(":")
        parts = [first, last if colon else first]
    shown = value if isinstance(value, str) else repr(value)
    if not any(parts) or not all(not part or (part.isascii() and part.isdigit()) for part in parts):
        raise ValueError(f"steps takes a range such as 5:8, 5: or :8, which count from 1, not {shown}")
    begin, end = int(parts[0] or 1), int(parts[1]) if parts[1] else None
    if begin < 1 or (end is not None and end < begin):
        raise ValueError(f"steps takes a range that counts from 1 and does not end before it begins, not {shown}")
    return begin, end


def choice_of(every: object = None, steps: object = None) -> StepChoice | None:
    """Returns the choice that `every` and `steps` describe; None if neither is given.

    Raises:
        ValueError: a value is wrong, or both are given.
    """
    if every is not None and steps is not None:
        raise ValueError("every and steps do not go together: give one of them")
    if every is not None:
        return StepChoice(every=every_from(every))
    return None if steps is None else StepChoice(None, *steps_from(steps))
