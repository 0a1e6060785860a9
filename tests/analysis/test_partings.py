"""Tests which statement is said to part ranks that ran different lines."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tensorlens.analysis.ranks.partings import parting
from tensorlens.records.model import Span, Trace

JUMPS = """\
    for step in range(3):
        loss = forward()
        if skip(step):
            continue
        loss.backward()
    total = reduce()
"""
TWO_JUMPS = JUMPS.replace(
    "        loss.backward()", "        if bad(loss):\n            break\n        loss.backward()"
)
BRANCH = """\
    begin()
    if rank == 0:
        one()
    other()
"""


@pytest.mark.parametrize(
    ("text", "before", "lines", "found"),
    [
        (JUMPS, 2, (5, 2), ("if", 3)),
        (JUMPS, 2, (2, 5), ("if", 3)),
        (JUMPS, 5, (2, 6), ("for", 1)),
        (JUMPS.replace("for step in range(3)", "while busy(1)"), 5, (6, 2), ("while", 1)),
        (TWO_JUMPS, 2, (7, 2), ("", None)),
        (BRANCH, 1, (3, 4), ("if", 2)),
        (BRANCH, None, (1, 4), ("", None)),
    ],
)
def test_parting(text: str, before: int | None, lines: tuple[int, int], found: tuple[str, int | None]) -> None:
    trace = cast(Trace, SimpleNamespace(sources={"a.py": textwrap.dedent(text)}))

    def at(line: int) -> Span:
        return Span("a.py", line, 0, line, 1)

    given: Any = None if before is None else at(before)
    word, span = parting(trace, given, at(lines[0]), at(lines[1]))
    assert (word, None if span is None else span.line) == found
