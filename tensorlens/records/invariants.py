"""Checks the invariants of a `Trace` that comes from a file, or from a run that was cut short.

A trace has millions of numbers. So the values of one field in all records are compared together, and only a field with
a wrong number is gone through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import chain
from operator import attrgetter, eq, lt
from typing import Any, get_args, get_origin, get_type_hints

from tensorlens.records.fields import bounds_of, lengths_of, references_of
from tensorlens.records.model import Backward, Call, Event, Trace

_LARGEST = 2**64  # no number of a trace is larger: sequence numbers have 64 bits


def validate(trace: Trace) -> list[str]:
    """Returns the invariants that `trace` breaks, in words; none for a sound trace."""
    problems: list[str] = []
    tables = _tables(trace)
    for name, table in tables.items():
        if name not in ("failures", "overwrites"):  # whose records have no id
            problems += [f"{name[:-1]} {n} has id {record.id}" for n, record in enumerate(table) if record.id != n]
    sizes = {name: len(table) for name, table in tables.items()}
    for kind, records in _records(trace):
        problems += _wrong_numbers(kind, records, sizes)
        problems += _wrong_lengths(kind, records)
    indices = [event.index for event in trace.events]
    if not all(map(lt, indices, indices[1:])):
        problems.append("events are not in order")
    for event in trace.events:
        if type(event) is not Call or event.writes or event.nodes[0] > event.nodes[1]:
            problems += _check_event(event)
    return problems


def _tables(trace: Trace) -> dict[str, tuple[Any, ...]]:
    """Returns the tables that fields refer to, by the names in `fields`."""
    return {
        "sites": trace.sites,
        "tensors": trace.tensors,
        "storages": trace.storages,
        "failures": trace.failures,
        "functions": trace.callbacks.functions,
        "registrations": trace.callbacks.registrations,
        "overwrites": trace.inspection.overwrites,
    }


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a field: each is at least `low`, and a position in `table` if that is not empty."""

    name: str
    several: bool  # a tuple of numbers
    has_floats: bool  # besides ints; they are not compared, since NaN is neither smaller nor larger than a number
    low: int
    table: str


@cache
def _numbers_in(kind: Any) -> tuple[_Numbers, ...]:
    references, bounds = references_of(kind), bounds_of(kind)
    return tuple(
        _Numbers(
            name,
            get_origin(hint) is tuple,
            float in get_args(hint),
            bounds.get(name, 0 if name in references else 1 - _LARGEST),
            table,
        )
        for name, hint in get_type_hints(kind).items()
        for table in (references.get(name, ""),)
        if hint is int or int in get_args(hint) or int in chain.from_iterable(map(get_args, get_args(hint)))
    )


def _wrong_numbers(kind: Any, records: list[Any], sizes: dict[str, int]) -> Iterator[str]:
    """Yields the references to records that do not exist, and the numbers that are too small or too large."""
    for field in _numbers_in(kind):
        values: Iterable[Any] = map(attrgetter(field.name), records)
        found = set(chain.from_iterable(values) if field.several else values)
        if field.has_floats:
            found = {value for value in found if type(value) is not float}
        found.discard(None)
        end = sizes[field.table] if field.table else _LARGEST
        for number in {min(found), max(found)} if found else ():
            if not field.low <= number < end:
                wrong = f" unknown {field.table[:-1]}" if field.table else ""
                yield f"{kind.__name__}.{field.name} is{wrong} {number}"


def _wrong_lengths(kind: Any, records: list[Any]) -> Iterator[str]:
    """Yields the tuples that are not as long as the ones that their items belong to."""
    for name, other in lengths_of(kind).items():
        sizes, wanted = (map(len, map(attrgetter(field), records)) for field in (name, other))
        if not all(map(eq, sizes, wanted)):
            yield f"{kind.__name__}.{name} is not as long as {other}"


def _records(trace: Trace) -> Iterator[tuple[Any, list[Any]]]:
    """Yields each type of records with all records of it that are in the trace."""
    found: dict[Any, list[Any]] = {Trace: [trace]}
    while found:
        within: dict[Any, list[Any]] = defaultdict(list)
        for kind, records in found.items():
            yield kind, records
            for name, several in _fields_with_records(kind):
                values: Iterable[Any] = map(attrgetter(name), records)
                items = list(chain.from_iterable(values) if several else filter(None, values))
                kinds = set(map(type, items))
                for each in kinds:
                    within[each] += items if len(kinds) == 1 else [item for item in items if type(item) is each]
        found = within


@cache
def _fields_with_records(kind: Any) -> tuple[tuple[str, bool], ...]:
    """Returns the fields that hold records, and whether they hold several."""
    hints = get_type_hints(kind)
    return tuple((name, get_origin(hint) is tuple) for name, hint in hints.items() if _names_record(hint))


def _names_record(hint: Any) -> bool:
    return is_dataclass(hint) or any(map(_names_record, get_args(hint)))


def _check_event(event: Event) -> list[str]:
    problems = []
    index = event.index
    if isinstance(event, Call):
        if event.nodes[0] > event.nodes[1]:
            problems.append(f"event {index} has the node bracket {event.nodes}")
        problems += [f"event {index}: write {w} does not advance" for w in event.writes if w.after <= w.before]
    elif isinstance(event, Backward) and event.started > index:
        problems.append(f"backward {index} started after it ended")
    return problems
