"""The lines round the reports of lessons: what comes before a script's own output, and the count of all claims."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.render.summary import count
from tensorlens.render.text import safe
from tensorlens.verdicts import Claim

BEFORE_REPORT = "-- the report --\n"


def before_script(announced: tuple[str, str, int], first: bool) -> str:
    """The title of a lesson, a label for what its script prints, and the error that it is to end in: its traceback
    comes before the report that explains it."""
    title, exception, line = announced
    text = "" if first else "\n"
    text += f"{safe(title)}\n" if title else ""
    if exception:
        text += f"Line {line} expects {exception} at the end. Its traceback goes to standard error.\n"
    return f"{text}-- the script prints --\n"


def claims_of_all(lessons: Sequence[tuple[str, Sequence[Claim]]]) -> str:
    """`22 lessons, 140 claims, all as recorded`."""
    number = sum(len(claims) for _, claims in lessons)
    failed = [f"{name}:{claim.line}" for name, claims in lessons for claim in claims if not claim.as_expected]
    verdict = f"{len(failed)} not as recorded: {', '.join(failed)}" if failed else "all as recorded"
    return f"\n{count(len(lessons), 'lesson')}, {count(number, 'claim')}, {safe(verdict)}\n"


def joined(texts: Sequence[str], format: str) -> str:
    """Several reports as one text: a JSON array, or documents one after the other."""
    if format == "json":
        return "[\n" + ",\n".join(text.strip() for text in texts) + "\n]\n"
    return "\n".join(texts)
