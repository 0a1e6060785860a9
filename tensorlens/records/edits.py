"""Applies the edits of a fix to a source text."""

from __future__ import annotations

from collections.abc import Iterable

from tensorlens.records.report import Edit
from tensorlens.records.source import lines_of


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Applies the edits of one file to its text. Every line end becomes a line feed.

    Raises:
        ValueError: two edits overlap, or one is outside the text.
    """
    lines = lines_of(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    flat, pieces, position = "\n".join(lines), [], 0
    for begin, end, new in sorted(_place(lines, starts, edit) for edit in edits):
        if begin < position:
            raise ValueError("two edits overlap")
        pieces += [flat[position:begin], new]
        position = end
    return "".join([*pieces, flat[position:]])


def _place(lines: tuple[str, ...], starts: list[int], edit: Edit) -> tuple[int, int, str]:
    """Returns the positions in the whole text where an edit begins and ends, and its text."""
    span = edit.span
    if not 1 <= span.line <= span.end_line <= len(lines):
        raise ValueError(f"the text has no line {span.line if span.line < 1 else span.end_line}")
    if not (0 <= span.column <= len(lines[span.line - 1]) and 0 <= span.end_column <= len(lines[span.end_line - 1])):
        raise ValueError(f"line {span.line} or {span.end_line} is shorter than the edit")
    begin, end = starts[span.line - 1] + span.column, starts[span.end_line - 1] + span.end_column
    if end < begin:
        raise ValueError("an edit ends before it begins")
    return begin, end, edit.text
