"""Renders the processes that a program started: a table, and the findings in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from tensorlens.analysis.ranks.rank_texts import ranks_text
from tensorlens.records.process_report import ProcessReport
from tensorlens.records.report import Diagnostic, Report
from tensorlens.render.markdown_text import fenced
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.findings import Finding, short_finding
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import Cell, HouseTable, printed

_SHOWN = 3  # findings that are shown in full


def processes_text(processes: Sequence[ProcessReport], form: str, options: RenderOptions) -> str:
    """Renders the processes as a `table` or as `markdown`."""
    text = printed(_sections(processes), max(options.width, 40), options.color and form == "table")
    return "\n".join(fenced(text.strip("\n").split("\n"))) + "\n" if form == "markdown" else text


def _sections(processes: Sequence[ProcessReport]) -> Iterator[RenderableType]:
    table = HouseTable(["process", "", "calls", "ended"], right=[0, 2])
    for each in processes:
        calls = "" if each.report is None else headline.run_parts(each.report.trace)[-1].split()[0]
        table.add(str(each.number), each.what, calls, Cell(each.ended, hang=2))
    yield table
    for position, (diagnostic, report, numbers) in enumerate(_findings(processes)):
        if position < _SHOWN:
            yield Text(safe(f"in {ranks_text(numbers, 'process', 'processes')}:"), "quiet")
            yield Finding(diagnostic, report.trace)
        else:
            where = ranks_text(numbers, "process", "processes")
            yield short_finding(diagnostic, report.trace).append(f"  (in {where})")


def _findings(processes: Sequence[ProcessReport]) -> list[tuple[Diagnostic, Report, list[int]]]:
    """Returns each finding once, with the processes that have it."""
    found: dict[object, tuple[Diagnostic, Report, list[int]]] = {}
    for each in processes:
        for diagnostic in () if each.report is None else each.report.diagnostics:
            places = tuple((label.role, label.span.file, label.span.line) for label in diagnostic.labels)
            entry = found.setdefault((diagnostic.code, diagnostic.title, places), (diagnostic, each.report, []))  # type: ignore[arg-type]
            if each.number not in entry[2]:
                entry[2].append(each.number)
    return list(found.values())
