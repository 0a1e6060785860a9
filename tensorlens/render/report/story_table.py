"""Draws the story: a table of the source lines that ran, with what each did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from tensorlens.analysis.sampled_run import has_break
from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.analysis.story.story import Row, Section
from tensorlens.records.claim import Claim
from tensorlens.records.model import Trace
from tensorlens.records.source import lines_of, shown_path, width
from tensorlens.render.highlight import source_line
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_details, claim_verdict, claims_to_read
from tensorlens.render.safe_text import cut, pad, safe
from tensorlens.render.tables import Cell, HouseTable

MAX_ROWS = 150
_LONGEST_SOURCE = 200  # cells; a longer line holds data, not code
_STYLES = {"plain": "plain", "passing": "plain", "error": "error", "warning": "warning"}


@dataclass(frozen=True, slots=True)
class StoryTable:
    """The table of a story. A lesson shows every line of the script, and the verdict beside each claim."""

    trace: Trace
    sections: Sequence[Section]
    options: RenderOptions

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lesson = self.options.lesson
        sections = _lesson_sections(self.trace, self.sections, self.options) if lesson else self.sections
        names = max([0, *(width(safe(fact.name)) for row in _rows(sections) for fact in row.facts)])
        marks = max([0, *(len(fact.storage) for row in _rows(sections) for fact in row.facts)])
        columns = _EventColumns(min(names, max(options.max_width // 8, 8)), marks)
        table = HouseTable(["line", "source", "what happened"], ["gutter", "code"])
        digits = max([2, *(len(str(row.line)) for row in _rows(sections))])
        left = MAX_ROWS
        for section in sections:
            rows = section.rows if lesson else _kept(section.rows, left)
            left -= len(rows)
            if title := section_title(self.trace, section):
                table.end_section()
                table.add("", Text(safe(title), "heading"), "")
            indent = 0 if lesson else _common_indent(rows)
            text = self.trace.sources.get(section.file, "")
            for row in rows:
                source = source_line(text, row.line, console) if row.source else Text()
                if width(source.plain) > _LONGEST_SOURCE and not lesson:
                    source = Text(cut(source.plain, _LONGEST_SOURCE))
                source = source[indent:]
                hang = len(source.plain) - len(source.plain.lstrip()) + 4
                number = f"{row.line:>{digits}} {row.count}".rstrip()
                table.add(number, Cell(source, hang=hang), columns.cell(row.facts))
            if len(rows) < len(section.rows):
                table.add("", Text(f"and {len(section.rows) - len(rows)} more lines", "quiet"), "")
        yield table


def story_parts(trace: Trace, sections: Sequence[Section], options: RenderOptions) -> list[RenderableType]:
    """Returns the story and the legend of its counts; nothing if no torch call was recorded."""
    if not sections and not options.lesson:
        return []
    legend = count_legend([row.count for row in _rows(sections)], has_break(trace))
    return [StoryTable(trace, sections, options), *(Text(text, "quiet") for text in legend)]


def story_size(sections: Sequence[Section]) -> int:
    """Returns a lower bound of the rows of the story."""
    return sum(max(len(row.facts), 1) for row in _rows(sections))


def _rows(sections: Sequence[Section]) -> Iterator[Row]:
    for section in sections:
        yield from section.rows


@dataclass(frozen=True, slots=True)
class _EventColumns:
    """The widths that align the names and the storages of events in their cell."""

    names: int
    marks: int

    def cell(self, facts: Sequence[LineEvent]) -> Cell:
        """Writes events below each other: name, storage, and what happened."""
        lines, hangs = [], []
        begun = min(self.names + 2 + (self.marks + 2 if self.marks else 0), 12)
        for fact in facts:
            line = Text()
            hangs.append(begun if fact.name else 2)
            if fact.name:
                line.append(pad(safe(fact.name), self.names) + "  ", "name")
                if self.marks:
                    line.append(pad(fact.storage, self.marks) + "  ", "gutter")
            line.append(safe("; ".join((fact.text, *fact.more))), _STYLES[fact.kind])
            lines.append(line)
        return Cell(Text("\n").join(lines), hang=hangs or 0)


def count_legend(counts: Sequence[str], is_sampled: bool = False) -> list[str]:
    """Explains the counts of lines, if there are any. `is_sampled`: not all runs of a line were recorded."""
    ran = "N runs of the line were recorded" if is_sampled else "the line ran N times"
    legend = [f"xN: {ran}; of each thing that it did, the last is shown"] if any(counts) else []
    if any(count.endswith("+") for count in counts):
        legend.append("xN+: at least N times; what runs did with no other line between them is shown as one")
    return legend


def section_title(trace: Trace, section: Section) -> str:
    """Returns `Net.forward, called from line 12`; "" for the top level of the script."""
    own = section.file == headline.script_file(trace)
    if own and section.function == "<module>":
        return ""
    file = shown_path(section.file, trace.script.folder)
    title = file if section.function == "<module>" else f"{section.function}" + ("" if own else f", {file}")
    if section.caller is None:
        return title
    caller_file, line = section.caller
    place = f"line {line}" if caller_file == section.file else f"{shown_path(caller_file, trace.script.folder)}:{line}"
    return f"{title}, called from {place}"


def _kept(rows: tuple[Row, ...], left: int) -> tuple[Row, ...]:
    """Returns the first `left` rows, and all rows with errors."""
    if len(rows) <= left:
        return rows
    return tuple(row for position, row in enumerate(rows) if position < left or _has_error(row))


def _has_error(row: Row) -> bool:
    return any(fact.kind == "error" for fact in row.facts)


def _common_indent(rows: Sequence[Row]) -> int:
    sources = [safe(row.source) for row in rows if row.source.strip()]
    return min((len(source) - len(source.lstrip()) for source in sources), default=0)


def _lesson_sections(trace: Trace, sections: Sequence[Section], options: RenderOptions) -> list[Section]:
    """Puts all lines of the script into one section, with the events of each line beside it; other files follow."""
    file = headline.script_file(trace)
    by_line: dict[int, list[Row]] = defaultdict(list)
    for section in sections:
        if section.file == file:
            for row in section.rows:
                by_line[row.line].append(row)
    skipped = headline.docstring_lines(trace)
    claims = {claim.line: claim for claim in trace.claims}
    lines = enumerate(lines_of(headline.script_source(trace)), 1)
    rows = [
        _lesson_row(Row(number, source, "", ()), by_line[number], claims, options.statements)
        for number, source in lines
        if number not in skipped
    ]
    while rows and not rows[0].source.strip():
        rows.pop(0)
    while rows and not rows[-1].source.strip():
        rows.pop()
    others = [section for section in sections if section.file != file]
    return [Section(file, "<module>", None, tuple(rows)), *others]


def _lesson_row(row: Row, ran: Sequence[Row], claims: Mapping[int, Claim], statements: Mapping[str, str]) -> Row:
    facts = [fact for each in ran for fact in each.facts]
    if row.line in claims and row.source.lstrip().startswith("#:"):
        claim = claims[row.line]
        facts.append(LineEvent("", claim_verdict(claim), kind="plain" if claim.as_expected else "error"))
        if claim.as_expected and claims_to_read([claim]):
            facts += [LineEvent("", text) for text in claim_details(claim, statements)]
    count = max((each.count for each in ran), key=len, default="")
    return replace(row, count=count, facts=tuple(facts))
