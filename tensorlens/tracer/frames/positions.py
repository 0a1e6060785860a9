"""Finds positions in the source: of an instruction, of a lambda's body, of a line."""

from __future__ import annotations

from types import CodeType

from tensorlens.tracer.frames.large_code import raw_position

Position = tuple[int, int, int, int]  # first line, last line, first column, last column, columns in UTF-8 bytes


def line_position(lines: tuple[str, ...], number: int) -> Position:
    """Returns the position of a line without its indentation and the comment after it."""
    text = lines[number - 1].partition("  #")[0].rstrip() if number <= len(lines) else ""
    indent = len(text) - len(text.lstrip())
    return number, number, indent, len(text.encode())


def extent(code: CodeType) -> Position:
    """Returns the position of a lambda's body: what its instructions cover together."""
    known = [p for p in code.co_positions() if None not in p and p[3]]
    if not known:
        return code.co_firstlineno, code.co_firstlineno, 0, 0
    first = min((p[0], p[2]) for p in known)
    last = max((p[1], p[3]) for p in known)
    return first[0], last[0], first[1], last[1]  # type: ignore[return-value]


def position_of(code: CodeType, offset: int) -> Position:
    """Returns (first line, last line, first column, last column) of an instruction, columns in UTF-8 bytes."""
    line, end_line, column, end_column = raw_position(code, offset) or (None, None, None, None)
    first = line or code.co_firstlineno
    return first, end_line or first, column or 0, end_column or 0
