"""Makes the page of several ranks: what they did alike and how they differ, and below it the page of one rank.

Its data is that of `data.py` for each rank that can be chosen (`pages`), and:

- `head`: what ran, the sentence that says how it ended, remarks.
- `endings`: the ranks that ended alike: [ranks, calls, last line, how they ended, style].
- `differences`: sentences, each with lines: [name of the line, page, file, line].
- `groups`: ranks that did alike share a column: their text, the page that shows them, how they ended.
- `lines`: the lines at which some rank made calls, with the calls of each group.
- `findings`: [the title, the ranks that have it, the page that shows it].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensorlens.analysis.ranks.alike import LineOfRanks, RankGroup, groups_of, lines_of_ranks, remark_on_ends
from tensorlens.analysis.ranks.endings import place_of
from tensorlens.analysis.ranks.merge import findings_of
from tensorlens.analysis.ranks.rank_texts import ranks_text, short_ranks
from tensorlens.records.merged_report import MergedReport, RankDifference, RankEnding
from tensorlens.records.model import Span, Trace
from tensorlens.records.source import line_at, one_line, shown_path
from tensorlens.render.options import RenderOptions
from tensorlens.render.page.data import page_data
from tensorlens.render.page.document import OF_RANKS, document
from tensorlens.render.page.strings import NONE
from tensorlens.render.report.merged_text import (
    ending_rows,
    is_well,
    merged_text,
    ranks_of_finding,
    run_parts,
    verdict_of_ranks,
)
from tensorlens.render.safe_text import safe

FORMAT, VERSION = "tensorlens.ranks-page", 1
MOST_PAGES = 8  # ranks that can be chosen, and groups that have a column
_MOST_TEXT = 9_000  # characters of the text report: the page has a script more than that of one run
_MOST_DIFFERENCES = 12
_LONGEST = 200  # characters of a source line


def ranks_to_html(report: MergedReport, options: RenderOptions) -> str:
    """Returns the page of several ranks. Without JavaScript it shows their report as text."""
    text = merged_text(report, "table", replace(options, width=100, color=False))
    data = ranks_data(report, options)
    return document(data["head"]["run"][0], data, text, OF_RANKS, _MOST_TEXT)


def ranks_data(report: MergedReport, options: RenderOptions) -> dict[str, Any]:
    """Returns everything that the page of several ranks shows."""
    groups = groups_of(report)
    shown = _shown(report, groups)
    page_of = {each.rank: place for place, each in enumerate(shown)}
    for group in groups:  # the others of a group are shown by its first
        for rank in group.ranks:
            page_of.setdefault(rank, page_of.get(group.ranks[0], NONE))
    return {
        "format": FORMAT,
        "version": VERSION,
        "head": _head(report, groups),
        "start": page_of.get(report.first if report.first is not None else shown[0].rank, 0),
        "endings": [[safe(cell) for cell in row] for row in ending_rows(report)],
        "differences": [_difference(each, report, page_of) for each in report.differences[:_MOST_DIFFERENCES]],
        "groups": [_group(group, page_of) for group in groups[:MOST_PAGES]],
        "lines": [_row(line) for line in lines_of_ranks(groups[:MOST_PAGES])],
        "findings": [
            [
                f"{each.diagnostic.severity}[{each.diagnostic.code}]",
                each.diagnostic.severity,
                safe(each.diagnostic.title),
                ranks_of_finding(each, report),
                page_of.get(each.ranks[0], NONE),
            ]
            for each in report.findings
        ],
        "pages": [_page(report, each, groups, options) for each in shown],
    }


def _head(report: MergedReport, groups: Sequence[RankGroup]) -> dict[str, Any]:
    remarks = [remark_on_ends(report)]
    if len(groups) > MOST_PAGES:
        remarks.append(f"the ranks did {len(groups)} different things: the page shows {MOST_PAGES} of them")
    if len(report.differences) > _MOST_DIFFERENCES:
        remarks.append(f"the page leaves out {len(report.differences) - _MOST_DIFFERENCES} differences")
    main = report.findings[0].diagnostic.severity if report.findings else "good" if is_well(report) else "plain"
    return {
        "run": run_parts(report),
        "sentence": safe(verdict_of_ranks(report)),
        "tone": main,
        "remarks": [safe(each) for each in remarks if each],
    }


def _shown(report: MergedReport, groups: Sequence[RankGroup]) -> list[RankEnding]:
    """Returns the ranks that can be chosen: all, or if there are many one of each group."""
    known = [each for each in report.endings if each.report is not None]
    if len(known) <= MOST_PAGES:
        return known
    lead = {group.ranks[0] for group in groups[:MOST_PAGES]}
    if report.first is not None and report.first not in lead:
        lead = {*sorted(lead)[: MOST_PAGES - 1], report.first}
    return [each for each in known if each.rank in lead]


def _page(
    report: MergedReport, ending: RankEnding, groups: Sequence[RankGroup], options: RenderOptions
) -> dict[str, Any]:
    """Returns the data of one rank, with the findings that the report of all ranks has."""
    assert ending.report is not None
    found = findings_of(report, ending)
    group = next(group for group in groups if ending.rank in group.ranks)
    others = [rank for rank in group.ranks if rank != ending.rank]
    data = page_data(replace(ending.report, diagnostics=found), options)
    if others:
        alike = f"{ranks_text(others)} made as many calls at each line, and ended alike"
        data["head"]["remarks"].append(alike)
    return {**data, "rank": ending.rank}


def _difference(each: RankDifference, report: MergedReport, page_of: Mapping[int, int]) -> dict[str, Any]:
    """Returns the sentence, and its lines with the page of the first of its ranks."""
    rank = each.ranks[0] if each.ranks else report.endings[0].rank
    known = report.endings[rank].report if rank < len(report.endings) else None
    lines = [] if known is None else [_line(known.trace, span) for span in each.lines]
    return {"text": safe(each.text), "page": page_of.get(rank, NONE), "lines": lines}


def _line(trace: Trace, span: Span) -> list[Any]:
    """Returns what a line is called, its file, and its number."""
    return [safe(place_of(trace, span)), safe(shown_path(span.file, trace.script.folder)), span.line]


def _group(group: RankGroup, page_of: Mapping[int, int]) -> dict[str, Any]:
    last = group.ending.last
    return {
        "text": f"{'rank' if len(group.ranks) == 1 else 'ranks'} {short_ranks(group.ranks)}",
        "title": ranks_text(group.ranks),
        "page": page_of.get(group.ranks[0], NONE),
        "last": None if last is None else _line(group.report.trace, last),
        "ended": safe(group.ending.text),
        "failed": group.ending.ending not in ("ended", "stopped", "waited"),
    }


def _row(line: LineOfRanks) -> dict[str, Any]:
    text = line_at(line.trace.sources.get(line.span.file, ""), line.span.line)
    return {
        "file": safe(line.line[0]),
        "line": line.line[1],
        "place": safe(place_of(line.trace, line.span)),
        "text": safe(one_line(text.strip(), _LONGEST)),
        "calls": list(line.calls),
        "differs": line.differs,
    }
