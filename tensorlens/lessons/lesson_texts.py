"""Writes the lines around the reports of lessons: headers, labels, and the count of all claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorlens.lessons.bundled import Header
from tensorlens.records.claim import Claim
from tensorlens.render.report.headline import count
from tensorlens.render.safe_text import safe

if TYPE_CHECKING:
    from tensorlens.render.options import RenderOptions


def between_lessons(number: int, total: int, name: str, options: RenderOptions) -> str:
    """Returns a line that separates lessons: `── 3 of 22: detach.py ──`; the first has no empty line above it."""
    from rich.rule import Rule
    from rich.text import Text

    from tensorlens.render.tables import printed

    title = Text(f"{number} of {total}: {safe(name)}", "heading")
    line = printed([Rule(title, align="left", style="quiet")], options.width, options.color)
    return line if number == 1 else f"\n{line}"


def before_script(header: Header) -> str:
    """Returns the title of a lesson, the error it is expected to end with, and a label for what the script prints.

    The error is named because its traceback is printed before the report that explains it."""
    text = f"{safe(header.title)}\n" if header.title else ""
    if header.exception:
        text += f"Line {header.line} expects {header.exception} at the end. Its traceback goes to standard error.\n"
    return text + ("-- the script prints --\n" if header.prints else "")


def before_report(header: Header) -> str:
    """Returns the text above the report: a label if the script's output or error precedes it, else an empty line below
    a title."""
    if header.prints or header.exception:
        return "-- the report --\n"
    return "\n" if header.title else ""


def claims_of_all(lessons: Sequence[tuple[str, Sequence[Claim]]], options: RenderOptions) -> str:
    """Returns a table of the lessons and the verdicts on their claims; below it `22 lessons, 140 claims, all as
    recorded`."""
    from tensorlens.render.tables import Cell, HouseTable, printed

    table = HouseTable(["lesson", "claims", "verdicts"], ["name"], right=[1])
    total = failed = 0
    for name, claims in lessons:
        lines = [str(claim.line) for claim in claims if not claim.as_expected]
        where = f"NOT AS RECORDED: line{'s' if len(lines) > 1 else ''} {', '.join(lines)}"
        table.add(name, str(len(claims)), Cell(where, "bad") if lines else Cell("as recorded"))
        total, failed = total + len(claims), failed + len(lines)
    ending = Cell(
        f"{count(len(lessons), 'lesson')}, {count(total, 'claim')}, "
        + (f"{failed} NOT AS RECORDED" if failed else "all as recorded"),
        "bad" if failed else "good",
    )
    return "\n" + printed([table, ending], options.width, options.color)


def joined(texts: Sequence[str], format: str) -> str:
    """Joins several reports: into a JSON array, or into documents one after the other."""
    if format == "json":
        return "[\n" + ",\n".join(text.strip() for text in texts) + "\n]\n"
    return "\n".join(texts)
