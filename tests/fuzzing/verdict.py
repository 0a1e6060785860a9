"""Checks every trace: its invariants hold, and every format can render its report."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

import jsonschema
from rich.cells import cell_len
from support.folders import DOCS

from tensorlens.diagnostics import diagnose
from tensorlens.records import trace_file
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.render import RenderOptions, render

_SCHEMA = json.loads((DOCS / "report.schema.json").read_text(encoding="utf-8"))
_VALIDATOR = jsonschema.Draft202012Validator(_SCHEMA)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = (60, 80, 120)


def wrong_with(trace: Trace, lesson: bool = False) -> list[str]:
    """Returns the invariants that `trace` breaks, in words."""
    problems = validate(trace) + wrong_with_report(Report(trace, tuple(diagnose(trace))), lesson)
    if trace_file.loads(trace_file.dumps(trace)) != trace:
        problems.append("saved and loaded it is another trace")
    return problems


def wrong_with_report(report: Report, lesson: bool = False) -> list[str]:
    """Returns what is wrong with the rendered formats of a report, in words."""
    problems: list[str] = []
    for width in WIDTHS:
        problems += _wrong_with_table(report, width, lesson)
    problems += obeyed("markdown", render(report, "markdown", RenderOptions(lesson=lesson)))
    data = json.loads(render(report, "json", RenderOptions(lesson=lesson)))
    return problems + [f"json: {error.message}" for error in _VALIDATOR.iter_errors(data)]


def _wrong_with_table(report: Report, width: int, lesson: bool) -> Iterator[str]:
    text = render(report, "table", RenderOptions(width=width, lesson=lesson))
    yield from obeyed(f"table of {width}", text)
    for line in text.split("\n"):
        if min(len(line), cell_len(line)) > width:
            yield f"table of {width}: a line of {cell_len(line)} cells: {line!r}"
    if width != WIDTHS[1]:
        return
    coloured = render(report, "table", RenderOptions(width=width, lesson=lesson, color=True))
    plain = [line.rstrip() for line in _COLOUR.sub("", coloured).split("\n")]
    if plain != [line.rstrip() for line in text.split("\n")]:
        yield f"table of {width}: with its colours taken off it is another text"


def obeyed(form: str, text: str) -> list[str]:
    """Returns the characters of a report that a terminal would obey or hide."""
    hidden = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}
    return [f"{form}: {char!a} is not shown but obeyed" for char in sorted(hidden)]
