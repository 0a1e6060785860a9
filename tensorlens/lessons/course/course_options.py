"""The options of `run NAME --step` and `run NAME --quiz`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CourseOptions:
    """`answers` takes the place of typed input: a file, or texts between commas. `restart` drops the saved progress."""

    answers: str | None = None
    restart: bool = False
    timeout: float | None = None
