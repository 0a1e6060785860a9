"""Renders the output of `list` and `errors`: the lessons, the index of errors, the pages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from tensorlens.records.error_messages import Entry, entries
from tensorlens.render.markdown_text import markdown_table
from tensorlens.render.safe_text import written

if TYPE_CHECKING:
    from tensorlens.diagnostics.manual import Answer
    from tensorlens.lessons.bundled import Lesson
    from tensorlens.lessons.course.curriculum import Stage

    Course = Sequence[tuple[Stage, Sequence[Lesson]]]


def render_lessons(course: Course, form: str, width: int) -> str:
    """Renders the lessons in learning order, each with its title; in JSON also with the text of its docstring."""
    rows = [(stage, lesson) for stage, lessons in course for lesson in lessons]
    if form == "json":
        keys = ("name", "title", "teaches", "article")
        records = [{"stage": stage.name, **{key: getattr(lesson, key) for key in keys}} for stage, lesson in rows]
        return _json("lessons", records)
    if form == "markdown":
        return _markdown(
            ("Stage", "Lesson", "Title"), [(stage.name, f"`{lesson.name}`", lesson.title) for stage, lesson in rows]
        )
    column = max(len(lesson.name) for _, lesson in rows) + 4
    texts = [f"Start with: tensorlens run {rows[0][1].name}\n"]
    for stage, lessons in course:
        texts.append(f"\n{stage.name}: {stage.about}\n")
        texts += [_lesson_line(lesson.name, lesson.title, column, width) for lesson in lessons]
    more = "tensorlens run NAME --step goes through a lesson line by line; --quiz asks before it answers."
    return "".join(texts) + "\n" + textwrap.fill(more, width) + "\n"


def _lesson_line(name: str, title: str, column: int, width: int) -> str:
    first = f"  {name:<{column - 2}}"
    return textwrap.fill(title, width, initial_indent=first, subsequent_indent=" " * column) + "\n"


def render_index(form: str, width: int, everything: bool = False, family: str = "") -> str:
    """Renders the index of errors: the frequent ones, all, or a family. JSON and Markdown always list rare ones too."""
    from tensorlens.render.manual import family_index, index  # `list` needs no pages

    if form == "table":
        return family_index(family, width) if family else index(width, everything)
    listed = [entry for entry in entries() if family in ("", entry.family)]
    if form == "json":
        return _json("errors", [_record(entry) for entry in listed])
    rows = [(f"`{entry.code}`", entry.kind, entry.summary) for entry in listed]
    return _markdown(("Code", "Kind", "What happened"), rows)


def render_pages(answer: Answer, form: str, width: int) -> str:
    """Renders the page of a code, or the pages of all errors that a message may mean."""
    from tensorlens.render.manual import markdown_body, page_markdown, page_text

    if form == "json":
        pages = [{**_record(entry), "page": markdown_body(entry), "see": list(entry.see)} for entry in answer.entries]
        return _json("errors", pages, {"remark": answer.remark} if answer.remark else {})
    if form == "markdown":
        return page_markdown(answer)
    return page_text(answer, width)


def _record(entry: Entry) -> dict[str, object]:
    return {
        "code": entry.code,
        "family": entry.family,
        "kind": entry.kind,
        "tier": entry.tier,
        "raises": entry.raises,
        "message": entry.message,
        "summary": entry.summary,
    }


def _json(kind: str, items: Sequence[object], more: Mapping[str, object] = MappingProxyType({})) -> str:
    data = {"format": f"tensorlens.{kind}", "version": 1, **more, kind: list(items)}
    return written(data, indent=2)


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(markdown_table(titles, escaped)) + "\n"
