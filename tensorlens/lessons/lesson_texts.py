"""Writes the lines around the reports of lessons: headers, labels, and the count of all claims."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.lessons.bundled import Header
from tensorlens.records.claim import Claim
from tensorlens.render.report.headline import count
from tensorlens.render.safe_text import safe


def before_script(header: Header, first: bool) -> str:
    """Returns the title of a lesson, the error it is expected to end with, and a label for what the script prints.

    The error is named because its traceback is printed before the report that explains it."""
    text = "" if first else "\n"
    text += f"{safe(header.title)}\n" if header.title else ""
    if header.exception:
        text += f"Line {header.line} expects {header.exception} at the end. Its traceback goes to standard error.\n"
    return text + ("-- the script prints --\n" if header.prints else "")


def before_report(header: Header) -> str:
    """Returns the text above the report: a label if the script's output or error precedes it, else an empty line below
    a title."""
    if header.prints or header.exception:
        return "-- the report --\n"
    return "\n" if header.title else ""


def claims_of_all(lessons: Sequence[tuple[str, Sequence[Claim]]]) -> str:
    """Returns `22 lessons, 140 claims, all as recorded`."""
    number = sum(len(claims) for _, claims in lessons)
    failed = [f"{name}:{claim.line}" for name, claims in lessons for claim in claims if not claim.as_expected]
    verdict = f"{len(failed)} not as recorded: {', '.join(failed)}" if failed else "all as recorded"
    return f"\n{count(len(lessons), 'lesson')}, {count(number, 'claim')}, {safe(verdict)}\n"


def joined(texts: Sequence[str], format: str) -> str:
    """Joins several reports: into a JSON array, or into documents one after the other."""
    if format == "json":
        return "[\n" + ",\n".join(text.strip() for text in texts) + "\n]\n"
    return "\n".join(texts)
