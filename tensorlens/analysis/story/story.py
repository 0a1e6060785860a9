"""What happened, line by line: one row a line with its count, in sections of one function each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.story.line_runs import LineRuns
from tensorlens.analysis.story.phrases import REGION_TEXTS, LineEvent, Phrases, failure_event
from tensorlens.records.model import Backward, Call, Change, Event, Gap, GradMode, Region, Trace
from tensorlens.records.source import line_at

MAX_FACTS = 6
_IMPORT = re.compile(r"\s*(import\s|from\s+\S+\s+import\b)[^;]*$")
_Place = tuple[str, str, int]  # file, function, line
_Mark = tuple[int, str, str]  # site, and what was done there
_Statement = tuple[int, int]  # where it begins
_Kind = tuple[_Statement, frozenset[_Mark]]  # of which statement a visit was, and what it did


@dataclass(frozen=True, slots=True)
class Row:
    """A source line, how often it ran (`x3`, at least three times: `x3+`), and what its last run did."""

    line: int
    source: str
    count: str
    facts: tuple[LineEvent, ...]


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
class _Visit:
    """Events that follow one another at one line, and what they did."""

    place: _Place
    events: list[Event]
    marks: set[_Mark]
    statement: _Statement

    @property
    def kind(self) -> _Kind:
        return self.statement, frozenset(self.marks)


@dataclass(slots=True)
class _Line:
    """The visits to one line: those that did the same kind of thing are told once, by the last of them."""

    visits: dict[_Kind, int] = field(default_factory=dict)  # kind -> number of the last visit
    sites: set[int] = field(default_factory=set)
    facts: dict[_Kind, list[LineEvent]] = field(default_factory=dict)
    failures: dict[str, LineEvent] = field(default_factory=dict)


def _rows(trace: Trace, names: Names) -> dict[_Place, Row]:
    visits = _visits(trace, names)
    lines: dict[_Place, _Line] = defaultdict(_Line)
    for number, visit in enumerate(visits):
        line = lines[visit.place]
        line.visits[visit.kind] = number
        line.sites |= {mark[0] for mark in visit.marks}
    _tell(visits, lines, Phrases(trace, names))
    _add_failures(trace, lines)
    runs = LineRuns(trace, names)
    rows = {}
    for place, line in lines.items():
        facts = [*_told(line), *line.failures.values()]
        facts = [fact for fact in facts if fact.kind != "passing"] or facts
        source = line_at(trace.sources.get(place[0], ""), place[2])
        if _IMPORT.match(source):  # what a library does when it is loaded is none of the program's doings
            facts = [fact for fact in facts if fact.kind in ("error", "warning")]
        if facts:
            rows[place] = Row(place[2], source, runs.of(line.sites).text, _limited(facts))
    return rows


def _told(line: _Line) -> list[LineEvent]:
    """The facts of a line, one statement after another."""
    statements = sorted({statement for statement, _ in line.facts})
    return [
        fact
        for statement in statements
        for fact in _latest(facts for kind, facts in line.facts.items() if kind[0] == statement)
    ]


def _latest(kinds: Iterable[list[LineEvent]]) -> list[LineEvent]:
    """The facts of a statement's visits, the last visit first; of one name, what the last visit that named it did."""
    facts: dict[LineEvent, None] = {}
    told: set[str] = set()
    for found in reversed(list(kinds)):
        facts |= {fact: None for fact in found if (fact.name or fact.text) not in told}
        told |= {fact.name or fact.text for fact in found}
    return list(facts)


def _tell(visits: list[_Visit], lines: dict[_Place, _Line], phrases: Phrases) -> None:
    for number, visit in enumerate(visits):
        line, kind = lines[visit.place], visit.kind
        if line.visits[kind] == number:
            line.facts[kind] = phrases.of(visit.events)
        phrases.observe(visit.events)


def _visits(trace: Trace, names: Names) -> list[_Visit]:
    """The events in runs at one line. A line whose own expression runs a second time begins a new visit."""
    visits: list[_Visit] = []
    visit: _Visit | None = None
    place = cache(lambda site: place_of(trace.sites[site]))
    for event in trace.events:
        if event.site is None or isinstance(event, Gap | Change) or _is_untold(event):
            continue
        here, mark = place(event.site), (event.site, *_what(event))
        statement = names.syntax.parts.statement(trace.sites[event.site])
        again = visit is not None and mark in visit.marks and _is_direct(trace, names, event)
        again = again or (visit is not None and _comes_round(trace, names, visit, event))
        if visit is None or again or (visit.place, visit.statement) != (here, statement):
            visit = _Visit(here, [], set(), statement)
            visits.append(visit)
        visit.marks.add(mark)
        visit.events.append(event)
    return visits


def _comes_round(trace: Trace, names: Names, visit: _Visit, event: Event) -> bool:
    """Whether a line begins anew: an expression of it runs again, after another one did."""
    sites = [found.site for found in visit.events if isinstance(found, Call | Backward)]
    if not isinstance(event, Call | Backward) or event.site not in sites or sites[-1] == event.site:
        return False
    return not names.syntax.parts.is_repeated(trace.sites[event.site])


def _is_direct(trace: Trace, names: Names, event: Event) -> bool:
    if isinstance(event, GradMode | Region):
        return event.entering
    return isinstance(event, Call) and not event.within and names.syntax.is_direct(trace.sites[event.site], event.op)


def _is_untold(event: Event) -> bool:
    return isinstance(event, Region) and not (event.entering and event.name in REGION_TEXTS)


def _what(event: Event) -> tuple[str, str]:
    """What kind of thing an event did: visits that did the same things are told once."""
    if isinstance(event, Call):
        return event.within or event.op, event.mode
    return type(event).__name__, str(getattr(event, "entering", ""))


def _add_failures(trace: Trace, lines: dict[_Place, _Line]) -> None:
    for failure in trace.failures:
        if failure.site is None:
            continue
        line = lines[place_of(trace.sites[failure.site])]
        line.failures[failure.type + str(failure.caught)] = failure_event(failure)
        line.sites.add(failure.site)


def _limited(facts: list[LineEvent]) -> tuple[LineEvent, ...]:
    facts = list(dict.fromkeys(facts))
    if len(facts) <= MAX_FACTS:
        return tuple(facts)
    errors = [fact for fact in facts[MAX_FACTS - 1 :] if fact.kind == "error"][-1:]
    kept = facts[: MAX_FACTS - 1 - len(errors)]
    return (*kept, LineEvent("", f"and {len(facts) - len(kept) - len(errors)} more"), *errors)


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
