"""What happened, line by line: one row a line with its count, in sections of one function each."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tensorlens.analysis.names import Names, place_of
from tensorlens.analysis.phrases import TOLD, Fact, Phrases, failure_fact
from tensorlens.model import Call, Change, Event, Failure, Gap, Region, Trace
from tensorlens.source import line_at

MAX_FACTS = 6
_Place = tuple[str, str, int]  # file, function, line
_Kind = frozenset[tuple[int, str]]  # what a visit did: sites and ops


@dataclass(frozen=True, slots=True)
class Row:
    """A source line, how often it ran, and what its last run did."""

    line: int
    source: str
    count: int
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """The lines of one function; `caller` is the (file, line) that called it first, None at the top of the script."""

    file: str
    function: str
    caller: tuple[str, int] | None
    rows: tuple[Row, ...]


def story(trace: Trace, names: Names) -> tuple[Section, ...]:
    """The sections of a run: the top level first, then the functions as they first came up; lines in their order."""
    rows = _rows(trace, names)
    callers = _callers(trace)
    sections: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for place, row in rows.items():
        sections[place[:2]].append(row)
    ordered = sorted(sections, key=lambda key: key[1] != "<module>")
    return tuple(
        Section(*key, callers.get(key), tuple(sorted(sections[key], key=lambda row: row.line))) for key in ordered
    )


@dataclass(slots=True)
class _Line:
    """The visits to one line: those that did the same kind of thing are told once, by the last of them."""

    visits: dict[_Kind, int] = field(default_factory=dict)  # kind -> number of the last visit
    sites: Counter[int] = field(default_factory=Counter)  # site -> visits that came by it
    facts: dict[_Kind, list[Fact]] = field(default_factory=dict)
    failures: dict[str, Fact] = field(default_factory=dict)


def _rows(trace: Trace, names: Names) -> dict[_Place, Row]:
    visits = _visits(trace, names)
    lines: dict[_Place, _Line] = defaultdict(_Line)
    for number, (place, events) in enumerate(visits):
        line = lines[place]
        line.visits[_kind(events)] = number
        line.sites.update({event.site for event in events if event.site is not None})
    _tell(visits, lines, Phrases(trace, names))
    _add_failures(trace, lines)
    totals = _totals(trace, names)
    rows = {}
    for place, line in lines.items():
        facts = [*(fact for found in line.facts.values() for fact in found), *line.failures.values()]
        facts = [fact for fact in facts if fact.kind != "passing"] or facts
        if facts:
            source = line_at(trace.sources.get(place[0], ""), place[2])
            rows[place] = Row(place[2], source, _count(line, totals), _limited(facts))
    return rows


def _tell(visits: list[tuple[_Place, list[Event]]], lines: dict[_Place, _Line], phrases: Phrases) -> None:
    for number, (place, events) in enumerate(visits):
        line, kind = lines[place], _kind(events)
        if line.visits[kind] == number:
            line.facts[kind] = phrases.of(events)
        phrases.observe(events)


def _visits(trace: Trace, names: Names) -> list[tuple[_Place, list[Event]]]:
    """The events in runs at one line. A line whose own expression runs a second time begins a new visit."""
    visits: list[tuple[_Place, list[Event]]] = []
    seen: set[tuple[int, str]] = set()
    for event in trace.events:
        if event.site is None or isinstance(event, Gap | Change) or _is_untold(event):
            continue
        site = trace.sites[event.site]
        place, mark = place_of(site), (event.site, _what(event))
        direct = isinstance(event, Call) and not event.within and names.syntax.is_direct(site, event.op)
        again = mark in seen and direct
        if not visits or visits[-1][0] != place or again:
            visits.append((place, []))
            seen = set()
        seen.add(mark)
        visits[-1][1].append(event)
    return visits


def _is_untold(event: Event) -> bool:
    return isinstance(event, Region) and not (event.entering and event.name in TOLD)


def _what(event: Event) -> str:
    """What kind of thing an event did: visits that did the same things are told once."""
    if isinstance(event, Call):
        return f"{event.within or event.op} {event.mode}"
    return f"{type(event).__name__} {getattr(event, 'entering', '')}"


def _kind(events: list[Event]) -> _Kind:
    return frozenset((event.site, _what(event)) for event in events if event.site is not None)


def _add_failures(trace: Trace, lines: dict[_Place, _Line]) -> None:
    for failure in trace.failures:
        if failure.site is None:
            continue
        line = lines[place_of(trace.sites[failure.site])]
        line.failures[failure.type + str(failure.caught)] = failure_fact(failure)
        if failure.op is not None and not _has_event(trace, failure):
            line.sites[failure.site] += 1


def _has_event(trace: Trace, failure: Failure) -> bool:
    """Whether the failed call is among the events too: a backward that raises is."""
    near = (trace.event(failure.index - 1), trace.event(failure.index))
    return any(event.site == failure.site and getattr(event, "failed", False) for event in near if event is not None)


def _totals(trace: Trace, names: Names) -> dict[int, int]:
    """How often each site ran in the whole run, for the sites whose expression is one op."""
    direct = (total for total in trace.totals if names.syntax.is_direct(trace.sites[total.site], total.op))
    return {total.site: total.count for total in direct}


def _count(line: _Line, totals: dict[int, int]) -> int:
    """How often the line ran: as seen in the window, or in the whole run where that is known."""
    return max([1, *line.sites.values(), *(totals.get(site, 1) for site in line.sites)])


def _limited(facts: list[Fact]) -> tuple[Fact, ...]:
    facts = list(dict.fromkeys(facts))
    if len(facts) <= MAX_FACTS:
        return tuple(facts)
    errors = [fact for fact in facts[MAX_FACTS - 1 :] if fact.kind == "error"][-1:]
    kept = facts[: MAX_FACTS - 1 - len(errors)]
    return (*kept, Fact("", f"and {len(facts) - len(kept) - len(errors)} more"), *errors)


def _callers(trace: Trace) -> dict[tuple[str, str], tuple[str, int]]:
    """Who called each function first; a comprehension's caller is the function round it, which is no news."""
    callers: dict[tuple[str, str], tuple[str, int]] = {}
    for site in trace.sites:
        file, function, _ = place_of(site)
        if site.caller is None or function == "<module>" or (file, function) in callers:
            continue
        caller = place_of(trace.sites[site.caller])
        if caller[:2] != (file, function):
            callers[file, function] = (caller[0], caller[2])
    return callers
