"""Makes the story of a run: a section for each function, and in it a row for each line.

A row says what the line did and how often it ran. A *visit* is one run of a line: its successive events.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import Place, Scope, place_of
from tensorlens.analysis.story.line_events import LineEvent, count_text
from tensorlens.analysis.story.line_runs import LineRuns
from tensorlens.analysis.story.phrases import REGION_TEXTS, Phrases, failure_event
from tensorlens.records.model import Backward, Call, Change, Event, Gap, GradMode, Region, Trace
from tensorlens.records.source import line_at

MAX_FACTS = 6
_IMPORT = re.compile(r"\s*(import\s|from\s+\S+\s+import\b)[^;]*$")
_COUNTED, _QUIET = (Call, Backward), (Gap, Change, Region)  # a test against `A | B` takes three times as long
_Mark = tuple[int, str, str]  # site, op and grad mode of an event
_Statement = tuple[int, int]  # line and column of its beginning


@dataclass(slots=True, eq=False)
class VisitKind:
    """A statement, and the marks of the events of a visit to it. Two visits of the same kind did the same."""

    statement: _Statement
    marks: frozenset[_Mark]
    longer: dict[_Mark, VisitKind] = field(default_factory=dict)  # the kind with one mark more


@dataclass(frozen=True, slots=True)
class Row:
    """A source line, how often it ran (`x3`, at least three times: `x3+`), and what its last run did."""

    line: int
    source: str
    count: str
    facts: tuple[LineEvent, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """The lines of one function; `caller` is the (file, line) that called it first, None for the script's top level."""

    file: str
    function: str
    caller: tuple[str, int] | None
    rows: tuple[Row, ...]


def story(trace: Trace, names: Names) -> tuple[Section, ...]:
    """Returns the sections of a run: the top level first, then the functions in the order in which they first ran."""
    rows = _rows(trace, names)
    callers = _callers(trace)
    sections: dict[Scope, list[Row]] = defaultdict(list)
    for place, row in rows.items():
        sections[place[:2]].append(row)
    ordered = sorted(sections, key=lambda key: key[1] != "<module>")
    return tuple(
        Section(*key, callers.get(key), tuple(sorted(sections[key], key=lambda row: row.line))) for key in ordered
    )


@dataclass(slots=True)
class Visit:
    """The successive events of one run of a line."""

    place: Place
    events: list[Event]
    kind: VisitKind
    sites: set[int] = field(default_factory=set)  # of its calls and backward passes
    last: int | None = None  # the site of the last of them


@dataclass(slots=True)
class _Line:
    """The visits to one line. Of those that did the same kind of thing, only the last is shown."""

    visits: dict[VisitKind, int] = field(default_factory=dict)  # kind -> number of the last visit
    sites: set[int] = field(default_factory=set)
    facts: dict[VisitKind, list[LineEvent]] = field(default_factory=dict)
    failures: dict[str, LineEvent] = field(default_factory=dict)


def _rows(trace: Trace, names: Names) -> dict[Place, Row]:
    visits = line_visits(trace, names)
    lines: dict[Place, _Line] = defaultdict(_Line)
    for number, visit in enumerate(visits):
        line = lines[visit.place]
        if visit.kind not in line.visits:
            line.sites |= {mark[0] for mark in visit.kind.marks}
        line.visits[visit.kind] = number
    _add_phrases(visits, lines, Phrases(trace, names))
    _add_failures(trace, lines)
    runs = LineRuns(trace, names)
    rows = {}
    for place, line in lines.items():
        facts = [*_facts_of(line), *line.failures.values()]
        facts = [fact for fact in facts if fact.kind != "passing"] or facts
        source = line_at(trace.sources.get(place[0], ""), place[2])
        if _IMPORT.match(source):  # not the effects of loading a library
            facts = [fact for fact in facts if fact.kind in ("error", "warning")]
        if facts:
            rows[place] = Row(place[2], source, runs.count(line.sites).text, _limited(facts))
    return rows


def _facts_of(line: _Line) -> list[LineEvent]:
    """Returns the facts of a line, in the order of its statements."""
    statements = sorted({kind.statement for kind in line.facts})
    return [
        fact
        for statement in statements
        for fact in _latest(facts for kind, facts in line.facts.items() if kind.statement == statement)
    ]


def _latest(kinds: Iterable[list[LineEvent]]) -> list[LineEvent]:
    """Returns the facts of a statement's visits, those of the last visit first.

    For a name that several visits have, only the facts of the last one count.
    """
    facts: dict[LineEvent, None] = {}
    shown: set[str] = set()
    for events in reversed(list(kinds)):
        facts |= {event: None for event in events if (event.name or event.text) not in shown}
        shown |= {event.name or event.text for event in events}
    return list(facts)


def _add_phrases(visits: list[Visit], lines: dict[Place, _Line], phrases: Phrases) -> None:
    changed: dict[tuple[Place, VisitKind], set[int]] = defaultdict(set)  # what all visits of a kind changed
    for number, visit in enumerate(visits):
        line, kind = lines[visit.place], visit.kind
        memory = phrases.lasting_memory(visit.events)
        changed[visit.place, kind] |= memory
        if line.visits[kind] == number:
            others = len(changed[visit.place, kind] - memory)
            line.facts[kind] = _with_others(phrases.line_events(visit.events), others)


def _with_others(facts: list[LineEvent], others: int) -> list[LineEvent]:
    """Adds the number of other tensors that earlier runs of the line changed to the first change of the last one."""
    at = next((place for place, fact in enumerate(facts) if fact.text.startswith("changed ")), None)
    if at is None or not others:
        return facts
    note = f"other runs changed {count_text(others, 'other tensor')}"
    return [*facts[:at], replace(facts[at], more=(*facts[at].more, note)), *facts[at + 1 :]]


def line_visits(trace: Trace, names: Names) -> list[Visit]:
    """Groups successive events at one line into visits. A new visit begins when an expression of the line runs
    again."""
    visits: list[Visit] = []
    visit: Visit | None = None
    kinds = _Kinds()
    begin = cache(
        lambda site: (place_of(trace.sites[site]), kinds.empty(names.syntax.parts.statement(trace.sites[site])))
    )
    for event in trace.events:
        site = event.site
        if site is None or (isinstance(event, _QUIET) and not _is_shown(event)):
            continue
        here, kind = begin(site)
        op, mode = (event.within or event.op, event.mode) if isinstance(event, Call) else _kind_of(event)
        mark = site, op, mode
        if (
            visit is None
            or visit.kind.statement != kind.statement
            or visit.place != here
            or (mark in visit.kind.marks and _is_direct(trace, names, event))
            or (visit.last != site and site in visit.sites and _begins_again(trace, names, event))
        ):
            visit = Visit(here, [event], kinds.with_mark(kind, mark))
            visits.append(visit)
        else:
            visit.kind = kinds.with_mark(visit.kind, mark)
            visit.events.append(event)
        if isinstance(event, _COUNTED):
            visit.last = site
            visit.sites.add(site)
    return visits


class _Kinds:
    """Makes one object for each kind of visit, so that the kinds of many visits are compared quickly."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[_Statement, frozenset[_Mark]], VisitKind] = {}

    def empty(self, statement: _Statement) -> VisitKind:
        return self._kind(statement, frozenset())

    def with_mark(self, kind: VisitKind, mark: _Mark) -> VisitKind:
        longer = kind.longer.get(mark)
        if longer is None:
            longer = kind.longer[mark] = self._kind(kind.statement, kind.marks | {mark})
        return longer

    def _kind(self, statement: _Statement, marks: frozenset[_Mark]) -> VisitKind:
        return self._kinds.setdefault((statement, marks), VisitKind(statement, marks))


def _begins_again(trace: Trace, names: Names, event: Event) -> bool:
    """Returns whether a line begins again when one of its expressions runs a second time, after another one."""
    return isinstance(event, Call | Backward) and not names.syntax.parts.is_repeated(trace.sites[event.site])


def _is_direct(trace: Trace, names: Names, event: Event) -> bool:
    if isinstance(event, GradMode | Region):
        return event.entering
    return isinstance(event, Call) and not event.within and names.syntax.is_direct(trace.sites[event.site], event.op)


def _is_shown(event: Gap | Change | Region) -> bool:
    return isinstance(event, Region) and event.entering and event.name in REGION_TEXTS


def _kind_of(event: Event) -> tuple[str, str]:
    """Returns what an event that is no call has in the place of an op and a grad mode. Visits in which these are the
    same are shown once."""
    return type(event).__name__, str(getattr(event, "entering", ""))


def _add_failures(trace: Trace, lines: dict[Place, _Line]) -> None:
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


def _callers(trace: Trace) -> dict[Scope, tuple[str, int]]:
    """Returns the (file, line) that called each function first."""
    callers: dict[Scope, tuple[str, int]] = {}
    for site in trace.sites:
        file, function, _ = place_of(site)
        if site.caller is None or function == "<module>" or (file, function) in callers:
            continue
        caller = place_of(trace.sites[site.caller])
        if caller[:2] != (file, function):  # a comprehension is called by the function around it
            callers[file, function] = (caller[0], caller[2])
    return callers
