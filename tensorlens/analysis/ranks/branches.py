"""Finds the line where one rank went another way than the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tensorlens.analysis.ranks.endings import place_of
from tensorlens.analysis.ranks.partings import parting
from tensorlens.analysis.ranks.rank_texts import ranks_text
from tensorlens.records.merged_report import RankDifference
from tensorlens.records.model import Gap, Notice, Span, Trace
from tensorlens.records.source import line_at, one_line, shown_path

_LONGEST = 60  # characters of a condition


class _Step(NamedTuple):
    """A line that made calls, once for each time that the rank arrived at it."""

    file: str
    line: int


def branches(traces: Mapping[int, Trace]) -> Iterator[RankDifference]:
    """Yields the first line at which ranks differ from the lowest one. A rank that only ended earlier is no
    difference. A run that has folded calls has no order to compare."""
    paths = {number: _path(trace) for number, trace in traces.items() if not is_folded(trace)}
    if len(paths) < 2:
        return
    base, *others = paths
    parted: dict[tuple[_Step, _Step], list[int]] = {}
    lines_before: dict[tuple[_Step, _Step], Span | None] = {}
    for number in others:
        position = next(
            (i for i, (a, b) in enumerate(zip(paths[base], paths[number], strict=False)) if a[0] != b[0]), -1
        )
        if position >= 0:
            key = paths[base][position][0], paths[number][position][0]
            parted.setdefault(key, []).append(number)
            lines_before[key] = paths[base][position - 1][1] if position else None
    spans = {step: (number, span) for number in paths for step, span in paths[number]}
    agreeing = [base, *(number for number in others if not any(number in group for group in parted.values()))]
    for (here, there), numbers in parted.items():
        trace = traces[numbers[0]]
        (_, first), (_, second) = spans[here], spans[there]
        others_at = f"{ranks_text(agreeing)} at {place_of(trace, first)}"
        text = f"{ranks_text(numbers)} went on at {place_of(trace, second)}, {others_at}"
        word, decided = parting(trace, lines_before[here, there], first, second)
        if decided is not None:
            shown = _shown(trace, second.file, decided)
            text += f": the `{word}` of {place_of(trace, decided)}, `{shown}`, parts these lines"
        yield RankDifference("branch", text, tuple(numbers), (second, first) if decided is None else (decided, second))


def _path(trace: Trace) -> list[tuple[_Step, Span]]:
    """Returns the lines that made calls in the order of the run. A line that is repeated counts again if it makes all
    its calls again: a library may make more calls on one rank than on another."""
    path: list[tuple[_Step, Span]] = []
    first = before = -1  # the sites of the first call of this line, and of the last one
    for site in _sites(trace):
        span = trace.sites[site].span
        step = _Step(shown_path(span.file, trace.script.folder), span.line)
        is_again = site == first != before and not trace.sites[site].through
        if not path or path[-1][0] != step or is_again:
            path.append((step, span))
            first = site
        before = site
    return path


def _sites(trace: Trace) -> Iterator[int]:
    """Yields the sites of the calls, and that of the call whose exception ended the script."""
    for event in trace.events:
        if not isinstance(event, Gap | Notice) and event.site is not None and event.site >= 0:
            yield event.site
    failure = None if trace.script.failure is None else trace.failures[trace.script.failure].site
    if failure is not None:
        yield failure


def is_folded(trace: Trace) -> bool:
    """Returns whether events are missing: the run was long, or only some of its steps were recorded."""
    return bool(trace.inspection.switches) or bool(trace.events and trace.events[-1].index + 1 > len(trace.events))


def _shown(trace: Trace, file: str, span: Span) -> str:
    text = line_at(trace.sources.get(file, ""), span.line)
    end = span.end_column if span.end_line == span.line else len(text)
    return one_line(text.encode()[span.column : end].decode(errors="replace"), _LONGEST)
