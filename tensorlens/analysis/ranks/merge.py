"""Merges the reports of the ranks of one distributed run into one."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.analysis.ranks.branches import branches
from tensorlens.analysis.ranks.collective_matches import collectives
from tensorlens.analysis.ranks.endings import endings_of, first_failed
from tensorlens.analysis.ranks.gradients import gradients
from tensorlens.analysis.ranks.passes import passes
from tensorlens.records.merged_report import MergedReport, RankedFinding, RankEnding
from tensorlens.records.model import Failure, Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import shown_path

Key = tuple[str, str, tuple[tuple[str, str, int], ...]]


def merged(reports: Sequence[Report]) -> MergedReport:
    """Returns the reports of ranks as one. Each must have a rank, all of the same world."""
    by_number = {report.trace.script.rank.number: report for report in reports if report.trace.script.rank is not None}
    ordered = dict(sorted(by_number.items()))
    world = max(report.trace.script.rank.world for report in ordered.values() if report.trace.script.rank is not None)
    first = first_failed(ordered)
    endings = endings_of(ordered, world, first)
    traces = {number: report.trace for number, report in ordered.items()}
    differences = (*branches(traces), *gradients(traces), *passes(traces), *collectives(traces))
    return MergedReport(tuple(ordered.values()), world, first, endings, _findings(endings, first), differences)


def _findings(endings: Sequence[RankEnding], first: int | None) -> tuple[RankedFinding, ...]:
    """Returns the findings of all ranks, those of the rank that failed first before the others, each once.

    The failure of a rank that came after another one is not explained: it may be due to that.
    """
    found: dict[Key, tuple[Diagnostic, list[int], Report]] = {}
    for each in sorted(endings, key=lambda ending: (ending.rank != first, ending.rank)):
        if each.report is None:
            continue
        is_own = each.ending in ("ended", "failed first", "failed alike", "timed out")
        for diagnostic in each.report.diagnostics:
            if is_own or not _is_about_end(each.report.trace, diagnostic):
                entry = found.setdefault(_key(each.report.trace, diagnostic), (diagnostic, [], each.report))
                entry[1].append(each.rank)
    return tuple(RankedFinding(one, tuple(sorted(set(ranks))), report) for one, ranks, report in found.values())


def findings_of(report: MergedReport, ending: RankEnding) -> tuple[Diagnostic, ...]:
    """Returns the findings of one rank that the report of all ranks has."""
    if ending.report is None:
        return ()
    own = {_key(ending.report.trace, each): each for each in ending.report.diagnostics}
    found = []
    for each in report.findings:
        if each.report is ending.report:
            found.append(each.diagnostic)
        elif ending.rank in each.ranks and (same := own.get(_key(each.report.trace, each.diagnostic))) is not None:
            found.append(same)
    return tuple(found)


def _is_about_end(trace: Trace, diagnostic: Diagnostic) -> bool:
    """Returns whether a finding is about the exception that ended the script."""
    number = trace.script.failure
    if number is None or diagnostic.severity != "error":
        return False
    failure: Failure = trace.failures[number]
    if diagnostic.code in (failure.kind, "uncaught-exception"):
        return True
    spans = [trace.sites[site].span for site in (failure.site, *failure.stack) if site is not None]
    lines = {(span.file, span.line) for span in spans}
    return any((label.span.file, label.span.line) in lines for label in diagnostic.labels)


def _key(trace: Trace, diagnostic: Diagnostic) -> Key:
    folder = trace.script.folder
    places = tuple((label.role, shown_path(label.span.file, folder), label.span.line) for label in diagnostic.labels)
    return diagnostic.code, diagnostic.title, places
