"""Applies the edits of a fix to a source text, and shows what they change."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import lines_of, shown_path

_LINE_END = re.compile(r"\r\n|\r|\n")
_NO_LINE_END = "\\ No newline at end of file"


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Applies the edits of one file to its text. Every line end becomes a line feed.

    Raises:
        ValueError: two edits overlap, or one is outside the text.
    """
    return edited_as_it_is("\n".join(lines_of(text)), edits)


def edited_as_it_is(text: str, edits: Iterable[Edit]) -> str:
    """Applies the edits of one file to its text. Line ends stay as they are; a new line has the end of the line that
    its edit begins in.

    Raises:
        ValueError: two edits overlap, or one is outside the text.
    """
    lines, ends = lines_of(text), [end.group() for end in _LINE_END.finditer(text)]
    starts = [0]
    for line, end in zip(lines, [*ends, ""], strict=True):
        starts.append(starts[-1] + len(line) + len(end))
    pieces: list[str] = []
    position = 0
    for begin, stop, edit in sorted((_place(lines, starts, edit) for edit in edits), key=lambda place: place[:2]):
        if begin < position:
            raise ValueError("two edits overlap")
        line_end = ends[min(edit.span.line, len(ends)) - 1] if ends else "\n"
        pieces += [text[position:begin], line_end.join(lines_of(edit.text))]
        position = stop
    return "".join([*pieces, text[position:]])


def _place(lines: tuple[str, ...], starts: list[int], edit: Edit) -> tuple[int, int, Edit]:
    """Returns the positions in the whole text where an edit begins and ends."""
    span = edit.span
    if not 1 <= span.line <= span.end_line <= len(lines):
        raise ValueError(f"the text has no line {span.line if span.line < 1 else span.end_line}")
    if not (0 <= span.column <= len(lines[span.line - 1]) and 0 <= span.end_column <= len(lines[span.end_line - 1])):
        raise ValueError(f"line {span.line} or {span.end_line} is shorter than the edit")
    begin, end = starts[span.line - 1] + span.column, starts[span.end_line - 1] + span.end_column
    if end < begin:
        raise ValueError("an edit ends before it begins")
    return begin, end, edit


def by_file(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    """Groups edits by the file that they change."""
    files: dict[str, list[Edit]] = {}
    for edit in edits:
        files.setdefault(edit.span.file, []).append(edit)
    return files


def edits_between(file: str, before: str, after: str) -> tuple[Edit, ...]:
    """Returns edits of whole lines that turn one text of a file into another."""
    return tuple(_line_edits(file, lines_of(before), lines_of(after)))


def _line_edits(file: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[Edit]:
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        text = "\n".join(new[begin:end])
        if kind == "equal":
            continue
        if first < last and begin < end:
            yield Edit(Span(file, first + 1, 0, last, len(old[last - 1])), text)
        elif first < len(old) and last < len(old):  # there is a line below
            yield Edit(Span(file, first + 1, 0, last + 1, 0), text + "\n" if begin < end else "")
        else:
            above = first, len(old[first - 1])
            yield Edit(Span(file, *above, last, len(old[last - 1])), "\n" + text if begin < end else "")


def unified_diff(sources: Mapping[str, str], edits: Sequence[Edit], folder: str) -> tuple[str, ...]:
    """Returns the lines of a unified diff of what edits change. Files are named relative to `folder`."""
    lines: list[str] = []
    for file, changes in by_file(edits).items():
        before = sources.get(file, "")
        name = shown_path(file, folder)
        old, new = _with_ends(before), _with_ends(edited(before, changes))
        found = difflib.unified_diff(old, new, name, name, lineterm="\n")
        lines += chain.from_iterable((line[:-1],) if line.endswith("\n") else (line, _NO_LINE_END) for line in found)
    return tuple(lines)


def _with_ends(text: str) -> list[str]:
    """Returns the lines of a text, each with a line feed, except a last line without one."""
    *lines, last = lines_of(text)
    return [f"{line}\n" for line in lines] + ([last] if last else [])
