"""The lines round the reports of lessons: what comes before a script's own output, and the count of all claims."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.lessons.bundled import Announced
from tensorlens.records.claim import Claim
from tensorlens.render.report.headline import count
from tensorlens.render.safe_text import safe


def before_script(announced: Announced, first: bool) -> str:
    """The title of a lesson, the error that it is to end in, whose traceback comes before the report that explains it,
    and a label for what its script prints, if it prints."""
    text = "" if first else "\n"
    text += f"{safe(announced.title)}\n" if announced.title else ""
    if announced.exception:
        text += (
            f"Line {announced.line} expects {announced.exception} at the end. Its traceback goes to standard error.\n"
        )
    return text + ("-- the script prints --\n" if announced.prints else "")


def before_report(announced: Announced) -> str:
    """A label for the report, where something stands above it; an empty line below a title."""
    if announced.prints or announced.exception:
        return "-- the report --\n"
    return "\n" if announced.title else ""


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
