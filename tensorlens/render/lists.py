"""What `list` and `errors` print in forms other than plain text: the lessons, what autograd can say, the pages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorlens.diagnostics import pages
from tensorlens.messages import Entry, entries
from tensorlens.render.text import written

if TYPE_CHECKING:
    from tensorlens.lessons import Lesson


def render_lessons(lessons: Sequence[Lesson], form: str, width: int) -> str:
    """The bundled lessons: name and title, and in JSON what each teaches."""
    if form == "json":
        keys = ("name", "title", "teaches", "article")
        return _json("lessons", [{key: getattr(lesson, key) for key in keys} for lesson in lessons])
    rows = [(lesson.name, lesson.title) for lesson in lessons]
    if form == "markdown":
        return _table(("Lesson", "Title"), [(f"`{name}`", title) for name, title in rows])
    size = max(len(name) for name, _ in rows)
    return "".join(
        textwrap.fill(title, width, initial_indent=f"{name:<{size}}  ", subsequent_indent=" " * (size + 2)) + "\n"
        for name, title in rows
    )


def render_index(form: str, width: int) -> str:
    """Every code that there is."""
    if form == "json":
        return _json("errors", [_record(entry) for entry in entries()])
    if form == "markdown":
        rows = [(f"`{entry.code}`", entry.kind, pages.summary(entry.code)) for entry in entries()]
        return _table(("Code", "Kind", "What happened"), rows)
    return pages.index(width)


def render_pages(found: Sequence[Entry], form: str, width: int) -> str:
    """The pages of one code, or of all that a message may mean."""
    if form == "json":
        return _json("errors", [{**_record(entry), "page": pages.page(entry.code)} for entry in found])
    if form == "markdown":
        return "\n".join(f"# {entry.code}\n\n{pages.body(entry)}\n" for entry in found)
    return pages.shown(found, width)


def _record(entry: Entry) -> dict[str, object]:
    return {
        "code": entry.code,
        "kind": entry.kind,
        "tier": entry.tier,
        "raises": entry.raises,
        "summary": pages.summary(entry.code),
    }


def _json(kind: str, items: Sequence[object]) -> str:
    data = {"format": f"tensorlens.{kind}", "version": 1, kind: list(items)}
    return written(data, indent=2)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in lines)
