"""Writes the output of `list` and `errors` in each form: the lessons, the codes, the pages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from tensorlens.diagnostics.manual import Answer
from tensorlens.records.error_messages import Entry, entries
from tensorlens.render.manual import family_index, index, markdown_body, page_markdown, page_text
from tensorlens.render.safe_text import written

if TYPE_CHECKING:
    from tensorlens.lessons.bundled import Lesson
    from tensorlens.lessons.course.curriculum import Stage

    Course = Sequence[tuple[Stage, Sequence[Lesson]]]


def render_lessons(course: Course, form: str, width: int) -> str:
    """The lessons in learning order, each with its title; in JSON also what it teaches."""
    rows = [(stage, lesson) for stage, found in course for lesson in found]
    if form == "json":
        keys = ("name", "title", "teaches", "article")
        records = [{"stage": stage.name, **{key: getattr(lesson, key) for key in keys}} for stage, lesson in rows]
        return _json("lessons", records)
    if form == "markdown":
        cells = [(stage.name, f"`{lesson.name}`", lesson.title) for stage, lesson in rows]
        return _table(("Stage", "Lesson", "Title"), cells)
    size = max(len(lesson.name) for _, lesson in rows) + 4
    texts = [f"Start with: tensorlens run {rows[0][1].name}\n"]
    for stage, found in course:
        texts.append(f"\n{stage.name}: {stage.about}\n")
        texts += [_entry(lesson.name, lesson.title, size, width) for lesson in found]
    more = "tensorlens run NAME --step goes through a lesson line by line; --quiz asks before it answers."
    return "".join(texts) + "\n" + textwrap.fill(more, width) + "\n"


def _entry(name: str, title: str, size: int, width: int) -> str:
    first = f"  {name:<{size - 2}}"
    return textwrap.fill(title, width, initial_indent=first, subsequent_indent=" " * size) + "\n"


def render_index(form: str, width: int, everything: bool = False, family: str = "") -> str:
    """Lists the codes that are met every day, all, or those of a family; JSON and Markdown always have all of them."""
    if form == "table":
        return family_index(family, width) if family else index(width, everything)
    listed = [entry for entry in entries() if family in ("", entry.family)]
    if form == "json":
        return _json("errors", [_record(entry) for entry in listed])
    rows = [(f"`{entry.code}`", entry.kind, entry.summary) for entry in listed]
    return _table(("Code", "Kind", "What happened"), rows)


def render_pages(answer: Answer, form: str, width: int) -> str:
    """The pages of one code, or of all that a message may mean."""
    if form == "json":
        found = [{**_record(entry), "page": markdown_body(entry), "see": list(entry.see)} for entry in answer.entries]
        return _json("errors", found, {"remark": answer.remark} if answer.remark else {})
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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in lines)
