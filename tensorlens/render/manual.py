"""Writes the manual: the index of codes, and pages for a terminal or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from tensorlens.diagnostics import manual
from tensorlens.diagnostics.manual import Answer
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.records.error_messages import Entry, entries
from tensorlens.render.highlight import source_line
from tensorlens.render.options import RenderOptions
from tensorlens.render.tables import Cell, HouseTable, printed

_TIERS = {1: "Met every day, the most frequent first", 2: "Met now and then", 3: "Hardly ever met"}
_KINDS = {"error": "error", "warning": "warning", "silent": "silent mistake"}
_FAILS = {"error": "Fails", "warning": "Warns", "silent": "Goes wrong"}
_INDENT = 4


def index(options: RenderOptions, everything: bool = False) -> str:
    """Lists the codes that are met every day, or all of them, with the first sentence of each page."""
    parts: list[RenderableType] = []
    for tier, heading in _TIERS.items():
        if tier == 1 or everything:
            listed = sorted((entry for entry in entries() if entry.tier == tier), key=manual.most_often_first)
            parts += [Text(heading, "heading"), _table(listed)]
    rest = sum(entry.tier > 1 for entry in entries())
    more = [] if everything else [f"{rest} more are met less often: tensorlens errors --all lists them too."]
    more.append("tensorlens errors CODE shows a page; a pasted message or traceback finds its own.")
    more.append(f"tensorlens errors --family NAME lists a family: {', '.join(manual.families())}.")
    return printed([*parts, Group(*map(Cell, more))], options.width, options.color)


def family_index(family: str, options: RenderOptions) -> str:
    """Lists the codes of a family."""
    listed = [entry for entry in entries() if entry.family == family]
    return printed([Text(f"Family {family}", "heading"), _table(listed)], options.width, options.color)


def _table(listed: Iterable[Entry]) -> HouseTable:
    """Draws one row per code, with the summary below the code: beside it there would be no room."""
    table = HouseTable(["kind", "code, and what happened"])
    for entry in listed:
        described = Text.assemble((entry.code, "name"), "\n", entry.summary)
        table.add(entry.kind, described)
    return table


def page_text(answer: Answer, options: RenderOptions) -> str:
    """Writes an answer for a terminal: the remark, and the pages one after the other."""
    parts: list[RenderableType] = [Cell(answer.remark)] if answer.remark else []
    for entry in answer.entries:
        parts += _page(entry, options.width)
    return printed(parts, options.width, options.color)


def page_markdown(answer: Answer) -> str:
    """Writes an answer as Markdown."""
    remark = [f"{answer.remark}\n"] if answer.remark else []
    return "\n".join([*remark, *(f"# {entry.code}\n\n{markdown_body(entry)}" for entry in answer.entries)])


def markdown_body(entry: Entry) -> str:
    """Writes a page as Markdown, without its title: PyTorch's message, the sections, what else to read."""
    said = [f"> {entry.message}"] if entry.message else []
    see = ["## See also", "\n".join(f"- `tensorlens {text}`" for text in see_also(entry))]
    text = _with_words(manual.page(entry.code)).replace("## Fails", f"## {_FAILS[entry.kind]}")
    return "\n\n".join([*said, text, *see]) + "\n"


def see_also(entry: Entry) -> tuple[str, ...]:
    """Returns the commands to try next: lessons, comparisons, other pages, `explain` for the reader's script."""
    return (*entry.see, "explain your_script.py")


def _page(entry: Entry, width: int) -> Iterator[RenderableType]:
    """Yields the parts of a page: its title, PyTorch's message, the sections, what else to read."""
    raises = f", {entry.raises}" if entry.raises else ""
    title = f"{entry.code} ({_KINDS[entry.kind]}{raises})"
    yield Group(Cell(title, "heading"), Text("-" * min(len(title), width), "quiet"))
    if entry.message:
        yield Text("PyTorch says:", "heading")
        yield Padding(Cell(entry.message), (0, 0, 0, _INDENT))
    for heading, text in manual.sections(_with_words(manual.page(entry.code))).items():
        yield Text(_FAILS[entry.kind] if heading == "Fails" else heading, "heading")
        yield from _section(text, width)
    yield Text("See also", "heading")
    yield Padding(_see_table(entry), (0, 0, 0, _INDENT))


def _section(text: str, width: int) -> Iterator[RenderableType]:
    """Yields the paragraphs and the examples of a section."""
    for number, part in enumerate(re.split(r"^```(?:python)?(?:\n|\Z)", text, flags=re.MULTILINE)):
        if number % 2:
            yield Padding(_Example(part, width - _INDENT), (0, 0, 0, _INDENT))
        else:
            yield from (Cell(" ".join(each.split())) for each in part.split("\n\n") if each.strip())


def _see_table(entry: Entry) -> HouseTable:
    """Lists the commands to try next, each with what it shows."""
    what = {"run": "a lesson", "compare": "measured", "errors": "a page", "explain": "your own script"}
    table = HouseTable(["", ""], ["plain", "quiet"])
    for text in see_also(entry):
        table.add(f"tensorlens {text}", what[text.partition(" ")[0]])
    return table


def _with_words(text: str) -> str:
    """Replaces the names of roles in the comments of a page's examples by words."""
    return re.sub(r"(?<=  # )\w+_here(?:, \w+_here)*$", _comment, text, flags=re.MULTILINE)


def _comment(found: re.Match[str]) -> str:
    return "; ".join(ROLE_NAMES[role] for role in found[0].split(", "))


class _Example:
    """The source of an example. A comment that would make its line too wide is on the line above."""

    def __init__(self, code: str, width: int) -> None:
        lines: list[str] = []
        for line in code.rstrip("\n").split("\n"):
            statement, marked, comment = line.rpartition("  # ")
            if len(line) > width and marked:
                indent = " " * (len(statement) - len(statement.lstrip()))
                lines += [f"{indent}# {comment}", statement]
            else:
                lines.append(line)
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        source = "\n".join(self._lines)
        for number in range(1, len(self._lines) + 1):
            yield Cell(source_line(source, number, console), hang=_INDENT)
