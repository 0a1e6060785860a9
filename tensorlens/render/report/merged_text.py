"""Renders the report of all ranks of a distributed run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tensorlens.analysis.ranks.alike import RankGroup, groups_of, lines_of_ranks, remark_on_ends
from tensorlens.analysis.ranks.endings import place_of
from tensorlens.analysis.ranks.rank_texts import rank_ranges, ranks_text, short_ranks
from tensorlens.analysis.training.run_summary import call_count
from tensorlens.records.merged_report import MergedReport, RankDifference, RankedFinding, RankEnding
from tensorlens.records.source import line_at, one_line
from tensorlens.render.markdown_text import fenced
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.findings import Finding, short_finding
from tensorlens.render.report.headline import count
from tensorlens.render.report.json import diagnostic_dict, ranks_of, to_dict
from tensorlens.render.report.shards import shard_rows, sharded_table
from tensorlens.render.safe_text import safe, written
from tensorlens.render.tables import Cell, HouseTable, printed

_SHOWN = 3  # findings that are shown in full
_ROWS, _LINES, _DIFFERENCES = 10, 8, 8  # of a table
_RANGES = 2  # of ranks, that a list of most ranks may have
_LONGEST = 50  # characters of a source line
_STYLES = {"failed first": "bad", "failed alike": "bad", "failed later": "bad", "no trace": "bad"}


def merged_text(report: MergedReport, form: str, options: RenderOptions) -> str:
    """Renders the report as a `table`, as `markdown` or as `json`."""
    if form == "json":
        return written(_to_dict(report, options), indent=1)
    text = printed(_sections(report), max(options.width, 40), options.color and form == "table")
    return "\n".join(fenced(text.strip("\n").split("\n"))) + "\n" if form == "markdown" else text


def _sections(report: MergedReport) -> Iterator[RenderableType]:
    yield Text.assemble((run_parts(report)[0], "heading"), "".join(f"   {part}" for part in run_parts(report)[1:]))
    groups = groups_of(report)
    yield _endings(report)
    if remark := remark_on_ends(report):
        yield Text(safe(remark), "quiet")
    yield from _sentences("differs between ranks", [each for each in report.differences if each.kind != "inputs"])
    yield from _sentences("the same on several ranks", [each for each in report.differences if each.kind == "inputs"])
    if (shards := sharded_table(report)) is not None:
        yield shards
    if (lines := _lines(report, groups)) is not None:
        yield lines
    if not_seen := _gaps(report):
        yield not_seen
    others = report.findings[1:]
    for each in reversed(others[: _SHOWN - 1]):
        yield from _finding(each, report)
    for each in others[_SHOWN - 1 :]:
        yield short_finding(each.diagnostic, each.report.trace).append(f"  ({ranks_text(each.ranks)})")
    yield Text(safe(verdict_of_ranks(report)), "good" if is_well(report) else "heading")
    if report.findings:
        yield from _finding(report.findings[0], report)


def _sentences(heading: str, found: list[RankDifference]) -> Iterator[HouseTable]:
    if not found:
        return
    table = HouseTable([heading])
    for each in found[:_DIFFERENCES]:
        table.add(Cell(each.text, hang=2))
    if len(found) > _DIFFERENCES:
        table.add(Cell(f"and {len(found) - _DIFFERENCES} more (all: --format json)", "quiet"))
    yield table


def run_parts(report: MergedReport) -> list[str]:
    """Returns what was run: `train.py`, `4 ranks`, `torch 2.13.0`."""
    versions = dict.fromkeys(safe(each.trace.versions.torch) for each in report.reports if each.trace.versions.torch)
    name = safe(headline.run_parts(report.main.trace)[0])
    return [name, count(report.world, "rank"), *(f"torch {version}" for version in versions)]


def _endings(report: MergedReport) -> HouseTable:
    """Lists how the ranks ended; those that ended alike share a row."""
    table = HouseTable(["ranks", "calls", "last line", "ended"], right=[1])
    rows = ending_rows(report)
    for ranks, calls, last, ended, style in rows[:_ROWS]:
        table.add(ranks, calls, last, Cell(ended, style))
    if len(rows) > _ROWS:
        table.add("", "", "", Cell(f"and {len(rows) - _ROWS} more that differ (all: --format json)", "quiet"))
    return table


def ending_rows(report: MergedReport) -> list[tuple[str, str, str, str, str]]:
    """Returns the ranks that ended alike, their calls, their last line, how they ended, and the style of that. Ranks
    with other numbers of calls share a row if there are many."""
    rows = _ending_rows(report, by_calls=True)
    return rows if len(rows) <= _ROWS else _ending_rows(report, by_calls=False)


def _ending_rows(report: MergedReport, *, by_calls: bool) -> list[tuple[str, str, str, str, str]]:
    rows: dict[tuple[int, str, str, str], list[RankEnding]] = {}
    for each in report.endings:
        last = "" if each.report is None or each.last is None else place_of(each.report.trace, each.last)
        calls = 0 if each.report is None or not by_calls else call_count(each.report.trace)
        style = _STYLES.get(each.ending, "plain")
        rows.setdefault((calls, last, _ended(each, report.first), style), []).append(each)
    found = []
    for (_, last, ended, style), endings in rows.items():
        numbers = sorted(call_count(each.report.trace) for each in endings if each.report is not None)
        shown = "-".join(f"{number:,}" for number in dict.fromkeys([*numbers[:1], *numbers[-1:]]))
        found.append((short_ranks([each.rank for each in endings]), shown, last, ended, style))
    return found


def _lines(report: MergedReport, groups: list[RankGroup]) -> HouseTable | None:
    """Lists the lines at which ranks that ran to their end made another number of calls."""
    ended = [group for group in groups if group.ending.ending == "ended"]
    if report.first is not None or len(ended) < 2:
        return None
    differing = [line for line in lines_of_ranks(ended) if line.differs]
    if not differing:
        return None
    table = HouseTable(["line", "calls"])
    for each in differing[:_LINES]:
        by_calls: dict[int, list[int]] = {}
        for group, calls in zip(ended, each.calls, strict=True):
            by_calls.setdefault(calls, []).extend(group.ranks)
        texts = [f"{calls or 'none'} on {ranks}" for calls, ranks in _others_last(by_calls)]
        source = line_at(each.trace.sources.get(each.span.file, ""), each.span.line).strip()
        place = place_of(each.trace, each.span)
        table.add(Cell(f"{place}  {one_line(source, _LONGEST)}", hang=2), Cell(", ".join(texts), hang=2))
    if len(differing) > _LINES:
        table.add("", f"and {count(len(differing) - _LINES, 'more line')}")
    return table


def _others_last(by_calls: dict[int, list[int]]) -> list[tuple[int, str]]:
    """Returns the numbers of calls, each with its ranks: the most ranks are "the others" if their list is long."""
    most = max(by_calls, key=lambda calls: len(by_calls[calls]))
    if len(rank_ranges(by_calls[most])) <= _RANGES:
        return [(calls, ranks_text(ranks)) for calls, ranks in by_calls.items()]
    texts = [(calls, ranks_text(ranks)) for calls, ranks in by_calls.items() if calls != most]
    return [*texts, (most, f"the other {len(by_calls[most])}")]


def _ended(ending: RankEnding, first: int | None) -> str:
    after = "" if first is None else f", after rank {first} had failed"
    texts = {
        "failed first": "failed first: {}" if first is not None else "{}",
        "failed alike": "failed alike: {}",
        "waited": "{}: it waited for a rank whose process was gone",
        "timed out": "{}: it waited for another rank until its time limit",
        "stopped": "{}" + after,
        "failed later": "{}" + after,
    }
    return texts.get(ending.ending, "{}").format(ending.text)


def _finding(each: RankedFinding, report: MergedReport) -> Iterator[RenderableType]:
    yield Text(f"{ranks_of_finding(each, report)}:", "quiet")
    yield Finding(each.diagnostic, each.report.trace)


def ranks_of_finding(each: RankedFinding, report: MergedReport) -> str:
    """Returns "on rank 1", "on all ranks"."""
    return f"on {ranks_text(each.ranks)}" if len(each.ranks) < report.world else "on all ranks"


def _gaps(report: MergedReport) -> HouseTable | None:
    """Lists what the ranks could not see, once for each reason."""
    rows: dict[tuple[str, str], list[int]] = {}
    for each in report.endings:
        if each.report is not None:
            for place, reason, _ in headline.gaps(each.report.trace):
                rows.setdefault((place, reason), []).append(each.rank)
    if not rows:
        return None
    table = HouseTable(["not seen", "", "ranks"], ["gutter"])
    for (place, reason), ranks in rows.items():
        table.add(place, reason, short_ranks(ranks))
    return table


def is_well(report: MergedReport) -> bool:
    """Returns whether all ranks ran to their end, and nothing was found."""
    return all(each.ending == "ended" for each in report.endings) and not report.findings


def verdict_of_ranks(report: MergedReport) -> str:
    """Says in one sentence how the ranks ended, and whether something was found."""
    if report.first is not None:
        ending = next(each for each in report.endings if each.rank == report.first)
        alike = [each.rank for each in report.endings if each.ending == "failed alike"]
        if alike:
            return f"{ranks_text(sorted([report.first, *alike]))} failed alike: {ending.text}"
        return f"rank {report.first} failed first: {ending.text}"
    missing = [each.rank for each in report.endings if each.ending == "no trace"]
    if missing:
        return f"there is no trace of {ranks_text(missing)}"
    waited = [each.rank for each in report.endings if each.ending == "timed out"]
    if waited:
        return f"{ranks_text(waited)} waited for another rank until {'their' if len(waited) > 1 else 'its'} time limit"
    failed = [each.rank for each in report.endings if each.ending != "ended"]
    if failed:
        return f"{ranks_text(failed)} did not end by {'themselves' if len(failed) > 1 else 'itself'}"
    if not report.findings:
        return f"no problem found on {ranks_text([each.rank for each in report.endings])}"
    return f"all ranks ran to their end; {count(len(report.findings), 'finding')}"


def _to_dict(report: MergedReport, options: RenderOptions) -> dict[str, Any]:
    """Returns the report of the rank that failed first, with the findings and the endings of all."""
    data = to_dict(report.main, options)
    data["diagnostics"] = [
        {**diagnostic_dict(each.diagnostic, each.report.trace), "ranks": list(each.ranks)} for each in report.findings
    ]
    data["ranks"] = []
    for each in report.endings:
        if each.report is not None:
            failed_first = each.rank == report.first if report.first is not None else None
            ranks = ranks_of(each.report) or ()
            data["ranks"] += [{**rank, "failed_first": failed_first, "ending": each.ending} for rank in ranks]
    data["missing_ranks"] = [each.rank for each in report.endings if each.report is None]
    data["rank_differences"] = [
        {"kind": each.kind, "text": each.text, "ranks": list(each.ranks)} for each in report.differences
    ]
    if shards := shard_rows(report):
        data["shards"] = [each.as_dict() for each in shards]
    return data
