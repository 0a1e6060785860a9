"""Lists the source lines that a fix changes, before and after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from tensorlens.records.edits import edited
from tensorlens.records.model import Trace
from tensorlens.records.report import Edit, Fix
from tensorlens.records.source import lines_of

MOST = 8  # lines of one fix that are listed


class ChangedLine(NamedTuple):
    """A line that a fix removes ("-") or adds ("+"). The number is that in the file before, or after, the fix."""

    sign: str
    number: int
    text: str


def edited_lines(fix: Fix, trace: Trace) -> dict[str, list[ChangedLine]]:
    """Returns the changed lines of each file. Of a line that is only indented anew, only the new one is listed."""
    by_file: dict[str, list[Edit]] = defaultdict(list)
    for edit in fix.edits:
        by_file[edit.span.file].append(edit)
    return {file: list(_changed(trace.sources.get(file, ""), edits)) for file, edits in by_file.items()}


def _changed(text: str, edits: list[Edit]) -> Iterator[ChangedLine]:
    try:
        new = lines_of(edited(text, edits))
    except ValueError:  # a trace from a file can hold anything
        return
    old = lines_of(text)
    for kind, begin, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        indented = {line.strip() for line in new[first:last]}
        for number in range(begin, end):
            if old[number].strip() and old[number].strip() not in indented:
                yield ChangedLine("-", number + 1, old[number])
        for number in range(first, last):
            yield ChangedLine("+", number + 1, new[number])
