"""Renders the output of `list` and `errors`: the lessons, the index of errors, the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from tensorlens.render.markdown_text import code, markdown_table, marked
from tensorlens.render.safe_text import written

if TYPE_CHECKING:
    from tensorlens.compare.probe.probes import Probe
    from tensorlens.diagnostics.manual import Answer
    from tensorlens.lessons.bundled import Lesson
    from tensorlens.lessons.course.curriculum import Stage
    from tensorlens.records.error_messages import Entry
    from tensorlens.render.options import RenderOptions

    Course = Sequence[tuple[Stage, Sequence[Lesson]]]


_START = (
    ("run tensor-basics", "the first lesson; --step shows it line by line, --quiz asks before it answers"),
    ("list", "all lessons, in learning order"),
    ("explain SCRIPT.py", "your own script: which line, and why"),
    ("compare detach clone", "ways of doing something, side by side"),
    ('errors "MESSAGE"', "what an error message means"),
)


def render_start(options: RenderOptions) -> str:
    """Renders the commands to start with."""
    from rich.padding import Padding

    from tensorlens.render.tables import Cell, HouseTable, printed

    table = HouseTable(["", ""], ["name"])
    for command, what in _START:
        table.add(f"tensorlens {command}", what)
    first = "TensorLens runs a PyTorch script and says which tensors share memory, what the graph is, and which line "
    intro = Cell(f"{first}broke it. Where to start:")
    more = Cell("tensorlens --help lists all commands and options.")
    return printed([intro, Padding(table, (0, 0, 0, 2)), more], options.width, options.color)


def render_lessons(course: Course, form: str, options: RenderOptions) -> str:
    """Renders the lessons in learning order, each with its title; in JSON also with the text of its docstring."""
    rows = [(stage, lesson) for stage, lessons in course for lesson in lessons]
    if form == "json":
        keys = ("name", "title", "teaches", "article")
        records = [{"stage": stage.name, **{key: getattr(lesson, key) for key in keys}} for stage, lesson in rows]
        return _json("lessons", records)
    if form == "markdown":
        cells = [(stage.name, code(lesson.name), marked(lesson.title)) for stage, lesson in rows]
        return "\n".join(markdown_table(("Stage", "Lesson", "Title"), cells)) + "\n"
    return _lesson_table(course, options)


def _lesson_table(course: Course, options: RenderOptions) -> str:
    from rich.text import Text

    from tensorlens.render.tables import Cell, HouseTable, printed

    table = HouseTable(["lesson", "what it shows"])
    for stage, lessons in course:
        table.add(Text(stage.name, "heading"), Text(stage.about, "quiet"))
        for lesson in lessons:
            table.add(f"  {lesson.name}", lesson.title)
        table.end_section()
    first = Cell(f"Start with: tensorlens run {course[0][1][0].name}")
    more = Cell("tensorlens run NAME --step goes through a lesson line by line; --quiz asks before it answers.")
    return printed([first, table, more], options.width, options.color)


def render_probes(probes: Sequence[Probe], options: RenderOptions) -> str:
    """Renders the questions that `compare` asks about each operand."""
    from tensorlens.render.tables import HouseTable, printed

    table = HouseTable(["probe", "what it asks"], ["name"])
    for probe in probes:
        table.add(probe.name, probe.question)
    return printed([table], options.width, options.color)


def render_index(form: str, options: RenderOptions, everything: bool = False, family: str = "") -> str:
    """Renders the index of errors: the frequent ones, all, or a family. JSON and Markdown always list rare ones too."""
    from tensorlens.records.error_messages import entries  # `list` needs neither entries nor pages
    from tensorlens.render.manual import family_index, index

    if form == "table":
        return family_index(family, options) if family else index(options, everything)
    listed = [entry for entry in entries() if family in ("", entry.family)]
    if form == "json":
        return _json("errors", [_record(entry) for entry in listed])
    rows = [(code(entry.code), entry.kind, marked(entry.summary)) for entry in listed]
    return "\n".join(markdown_table(("Code", "Kind", "What happened"), rows)) + "\n"


def render_pages(answer: Answer, form: str, options: RenderOptions) -> str:
    """Renders the page of a code, or the pages of all errors that a message may mean."""
    from tensorlens.render.manual import markdown_body, page_markdown, page_text

    if form == "json":
        pages = [{**_record(entry), "page": markdown_body(entry), "see": list(entry.see)} for entry in answer.entries]
        return _json("errors", pages, {"remark": answer.remark} if answer.remark else {})
    if form == "markdown":
        return page_markdown(answer)
    return page_text(answer, options)


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
