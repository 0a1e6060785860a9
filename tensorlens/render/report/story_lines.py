"""Draws the story: each source line with its number and count, and its events beside or below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.analysis.story.story import Row, Section
from tensorlens.records.model import Trace
from tensorlens.records.source import lines_of, shown_path, width
from tensorlens.render.layout import Line, line_width, paragraph
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_verdict
from tensorlens.render.safe_text import cut, pad, safe, wrap

MAX_ROWS = 150
_STYLES = {"plain": "plain", "passing": "plain", "error": "error", "warning": "warning"}


def story_lines(trace: Trace, sections: Sequence[Section], size: int, lesson: bool) -> list[Line]:
    """Returns the lines of the story; none if no torch call was recorded."""
    if lesson:
        sections = _lesson_sections(trace, sections)
    if not sections:
        return []
    shown = [row for section in sections for row in (section.rows if lesson else _dedented(section.rows))]
    shape = _best_shape(shown, size, lesson)
    lines: list[Line] = [shape.head()]
    left = MAX_ROWS
    for section in sections:
        if header := section_title(trace, section):
            lines += [[], *paragraph(safe(header), size, style="heading")]
        rows = section.rows if lesson else _dedented(_kept(section.rows, left))
        left -= len(rows)
        for row in rows:
            lines += shape.row(row, lesson)
        if len(rows) < len(section.rows):
            lines.append([(f"      and {len(section.rows) - len(rows)} more lines", "quiet")])
    for text in count_legend([row.count for section in sections for row in section.rows]):
        lines += paragraph(text, size, style="quiet")
    return lines


def count_legend(counts: Sequence[str]) -> list[str]:
    """Explains the counts of lines, if there are any."""
    legend = ["xN: the line ran N times; of each thing that it did, the last is shown"] if any(counts) else []
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


def _dedented(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Removes the indentation that the rows have in common."""
    indent = min([len(row.source) - len(row.source.lstrip()) for row in rows if row.source.strip()], default=0)
    return tuple(replace(row, source=row.source[indent:]) for row in rows)


def _has_error(row: Row) -> bool:
    return any(fact.kind == "error" for fact in row.facts)


def _lesson_sections(trace: Trace, sections: Sequence[Section]) -> list[Section]:
    """Puts all lines of the script into one section, with the events of each line beside it; other files follow."""
    file = headline.script_file(trace)
    by_line: dict[int, list[Row]] = defaultdict(list)
    for section in sections:
        if section.file == file:
            for row in section.rows:
                by_line[row.line].append(row)
    skipped = headline.docstring_lines(trace)
    claims = {claim.line: claim for claim in trace.claims}
    rows = []
    for number, source in enumerate(lines_of(headline.script_source(trace)), 1):
        ran = by_line.get(number, [])
        facts = [fact for row in ran for fact in row.facts]
        if number in claims and source.lstrip().startswith("#:"):
            claim = claims[number]
            facts.append(LineEvent("", claim_verdict(claim), kind="plain" if claim.as_expected else "error"))
        if number not in skipped:
            rows.append(Row(number, source, max((row.count for row in ran), key=len, default=""), tuple(facts)))
    while rows and not rows[0].source.strip():
        rows.pop(0)
    while rows and not rows[-1].source.strip():
        rows.pop()
    others = [section for section in sections if section.file != file]
    return [Section(file, "<module>", None, tuple(rows)), *others]


def _best_shape(rows: Sequence[Row], size: int, lesson: bool) -> _Shape:
    """Chooses the width of the source column that makes the story shortest."""
    widths = {width(safe(row.source).rstrip()) for row in rows if row.facts}
    candidates = sorted(source for source in widths | {size // 3} if size // 5 <= source <= size * 3 // 5)
    shapes = [_Shape(rows, size, source) for source in candidates[-12:]]
    return min(shapes, key=lambda shape: sum(len(shape.row(row, lesson)) for row in rows[:MAX_ROWS]))


class _Shape:
    """The widths of the story's columns, the same for all rows, and the drawing of a row in them."""

    def __init__(self, rows: Sequence[Row], size: int, source: int) -> None:
        counts = max([0, *(len(row.count) for row in rows)])
        self._size = size
        self._number = max(4, *(len(str(row.line)) for row in rows)) if rows else 4
        self._count = counts + 2 if counts else 0
        names = [width(safe(fact.name)) for row in rows for fact in row.facts]
        self._name = min(max([0, *names]), max(size // 8, 8))
        self._storage = max([0, *(len(fact.storage) for row in rows for fact in row.facts)])
        self._source = max(min(source, max([width(safe(row.source).rstrip()) for row in rows], default=0)), 6)
        indent = self._number + self._count + 2
        self._left = indent + self._source + 2

    def head(self) -> Line:
        left = pad("line", self._number + self._count) + "  " + pad("source", self._source)
        return [(left + "  what happened", "quiet")]

    def row(self, row: Row, lesson: bool) -> list[Line]:
        """Returns the lines of a row: its source beside the first event if it fits, else above the events."""
        number: Line = [(f"{row.line:>{self._number}}", "gutter")]
        if self._count:
            number.append((f"{row.count:>{self._count}}", "quiet"))
        number.append(("  ", "plain"))
        source = safe(row.source.rstrip())
        room = self._size - line_width(number)
        facts = [line for fact in row.facts for line in self._fact(fact)]
        if width(source) <= self._source:
            first = facts[0] if facts else []
            begun = [*number, (pad(source, self._source) + "  " if facts else source, "code"), *first]
            return [begun, *(self._below(line) for line in facts[1:])]
        texts = wrap_source(source, room) if lesson else [cut(source, room)]
        above = [[*number, (texts[0], "code")]]
        above += [[(" " * line_width(number), "plain"), (text, "code")] for text in texts[1:]]
        return [*above, *(self._below(line) for line in facts)]

    def _below(self, line: Line) -> Line:
        return [(" " * self._left, "plain"), *line]

    def _fact(self, fact: LineEvent) -> list[Line]:
        room, style = self._size - self._left, _STYLES[fact.kind]
        name, texts = safe(fact.name), [safe(text) for text in (fact.text, *fact.more)]
        lines: list[Line] = []
        first: Line = []
        hang = 0
        if name:
            storage = pad(fact.storage, self._storage) + "  " if self._storage else ""
            first = [(pad(name, self._name) + "  ", "name"), (storage, "gutter")]
            hang = self._name + 2 + width(storage)
            if line_width(first) > room // 2:
                lines, first = paragraph(name, room, style="name"), [(" " * (self._name + 2), "plain"), first[1]]
        joined = "; ".join(texts)
        if line_width(first) + width(joined) <= room:
            return [*lines, [*first, (joined, style)]]
        for text in texts:
            lines += paragraph(text, room, first, style, hang)
            first = [(" " * hang, "plain")] if hang else []
        return lines


def wrap_source(source: str, room: int) -> list[str]:
    """Breaks a long source line into pieces; the later ones are indented deeper than the first."""
    indent = len(source) - len(source.lstrip())
    pieces = wrap(source.lstrip(), room - indent - 4)
    return [" " * indent + pieces[0], *(" " * (indent + 4) + piece for piece in pieces[1:])]
