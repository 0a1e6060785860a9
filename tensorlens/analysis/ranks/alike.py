"""Groups the ranks that did alike, and finds the lines at which they did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorlens.analysis.ranks.endings import place_of
from tensorlens.records.merged_report import MergedReport, RankEnding
from tensorlens.records.model import Backward, Call, Span, Trace
from tensorlens.records.report import Report
from tensorlens.records.source import shown_path

Line = tuple[str, int]  # the file as it is shown, the line
_APART = 600.0  # seconds between the ends of two ranks of one run that are worth a remark


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that made as many calls at each line, and ended alike. `report` and `ending` are those of the first."""

    ranks: tuple[int, ...]
    report: Report
    ending: RankEnding
    calls: Mapping[Line, int]


@dataclass(frozen=True, slots=True)
class LineOfRanks:
    """A line at which some rank made calls, with the number of calls of each group."""

    line: Line
    span: Span
    trace: Trace  # that has the line
    calls: tuple[int, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.calls)) > 1


def groups_of(report: MergedReport) -> list[RankGroup]:
    """Returns the ranks that left a trace in groups of those that did alike, the group of the lowest rank first."""
    groups: dict[object, list[RankEnding]] = {}
    calls: dict[int, Mapping[Line, int]] = {}
    for each in report.endings:
        if each.report is not None:
            trace = each.report.trace
            calls[each.rank] = calls_by_line(trace)
            last = "" if each.last is None else place_of(trace, each.last)
            key = frozenset(calls[each.rank].items()), each.ending, each.text, last
            groups.setdefault(key, []).append(each)
    return [
        RankGroup(tuple(each.rank for each in endings), endings[0].report, endings[0], calls[endings[0].rank])
        for endings in groups.values()
        if endings[0].report is not None
    ]


def calls_by_line(trace: Trace) -> dict[Line, int]:
    """Counts the torch calls at each line, with those that a long run has folded."""
    counts: Counter[int] = Counter()
    if trace.totals:
        for total in trace.totals:
            counts[total.site] += total.count
    else:
        counts.update(event.site for event in trace.events if isinstance(event, Call | Backward))
    lines: Counter[Line] = Counter()
    for site, count in counts.items():
        if site >= 0:
            span = trace.sites[site].span
            lines[shown_path(span.file, trace.script.folder), span.line] += count
    return dict(lines)


def lines_of_ranks(groups: Sequence[RankGroup]) -> list[LineOfRanks]:
    """Returns the lines at which a group made calls, by file and line."""
    spans: dict[Line, tuple[Span, Trace]] = {}
    for group in groups:
        trace = group.report.trace
        for site in trace.sites:
            line = shown_path(site.span.file, trace.script.folder), site.span.line
            if line in group.calls:
                spans.setdefault(line, (site.span, trace))
    own = shown_path(groups[0].report.trace.script.path, groups[0].report.trace.script.folder) if groups else ""
    ordered = sorted(spans, key=lambda line: (line[0] != own, line))
    return [LineOfRanks(line, *spans[line], tuple(group.calls.get(line, 0) for group in groups)) for line in ordered]


def remark_on_ends(report: MergedReport) -> str:
    """Says that ranks ended long after each other, where nothing shows that they are of one run."""
    ends = [
        (trace.inspection.ended_at[-1].seconds, each.rank)
        for each in report.endings
        if each.ending == "ended" and each.report is not None and (trace := each.report.trace).inspection.ended_at
    ]
    runs = {rank.run for each in report.reports if (rank := each.trace.script.rank) is not None}
    if not ends or (len(runs) == 1 and "" not in runs):
        return ""
    (first, one), (last, other) = min(ends), max(ends)
    if last - first < _APART:
        return ""
    minutes = f"{(last - first) / 60:.0f} minutes"
    return f"rank {other} ended {minutes} after rank {one}, by the clocks of their machines: are they of one run?"
