"""A fix is shown as the lines that it changes."""

from __future__ import annotations

from dataclasses import replace

from support.traces import written_alias

from tensorlens.records.model import Span
from tensorlens.records.report import Edit, Fix, Report
from tensorlens.render import render
from tensorlens.render.report.edited_lines import ChangedLine, edited_lines

FILE = "/home/ada/demo.py"
SOURCE = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n"


def made(*edits: Edit) -> list[ChangedLine]:
    trace = written_alias("\n" * 9).trace
    return edited_lines(Fix("do it", edits), replace(trace, sources={FILE: SOURCE}))[FILE]


def test_a_replaced_line_is_listed_twice() -> None:
    assert made(Edit(Span(FILE, 2, 4, 2, 5), "7")) == [("-", 2, "b = 2"), ("+", 2, "b = 7")]


def test_an_added_line_has_its_new_number() -> None:
    assert made(Edit(Span(FILE, 3, 5, 3, 5), "\nx = 0")) == [("+", 4, "x = 0")]


def test_lines_that_are_only_indented_are_listed_once() -> None:
    edits = [Edit(Span(FILE, 2, 0, 2, 0), "with f:\n    "), Edit(Span(FILE, 3, 0, 3, 0), "    ")]
    assert made(*edits) == [("+", 2, "with f:"), ("+", 3, "    b = 2"), ("+", 4, "    c = 3")]


def test_a_moved_line_is_listed_where_it_was_and_where_it_is() -> None:
    assert made(Edit(Span(FILE, 1, 0, 2, 0), ""), Edit(Span(FILE, 4, 5, 4, 5), "\na = 1")) == [
        ("-", 1, "a = 1"),
        ("+", 4, "a = 1"),
    ]


def test_edits_that_do_not_fit_the_source_are_not_shown() -> None:
    assert made(Edit(Span(FILE, 99, 0, 99, 0), "x")) == []


def test_a_long_fix_is_cut() -> None:
    report = written_alias("a = 1\nb = a\nc = b\nd = 4\ne = 5\n")
    fix = Fix("do it", (Edit(Span(FILE, 4, 5, 4, 5), "\nx = 0" * 20),))
    diagnostic = replace(report.diagnostics[0], fixes=(fix,))
    text = render(Report(report.trace, (diagnostic,)))
    assert text.count("+ x = 0") == 8
    assert "… 12 more changed lines" in text
