"""The options of `run NAME --step` and `run NAME --quiz`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CourseOptions:
    """`answers` replace what a user would type: a file, or texts between commas. `restart` forgets the saved place."""

    answers: str | None = None
    restart: bool = False
    timeout: float | None = None
