"""Checks the invariants of a `Trace` that comes from a file, or from a run that was cut short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from tensorlens.records.fields import bounds_of, references_of
from tensorlens.records.model import Backward, Call, Event, Span, Trace


def validate(trace: Trace) -> list[str]:
    """Returns the invariants that `trace` breaks, in words; none for a sound trace."""
    problems: list[str] = []
    tables = _tables(trace)
    for name, table in tables.items():
        if name not in ("failures", "overwrites"):  # whose records have no id
            problems += [f"{name[:-1]} {n} has id {record.id}" for n, record in enumerate(table) if record.id != n]
    sizes = {name: len(table) for name, table in tables.items()}
    problems += _wrong_numbers(_records(trace), sizes)
    problems += _wrong_numbers((site.span for site in trace.sites), sizes)
    for before, event in pairwise(trace.events):
        if before.index >= event.index:
            problems.append(f"event {event.index} comes after event {before.index}")
    for event in trace.events:
        problems.extend(_check_event(event))
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


def _wrong_numbers(records: Iterable[Any], sizes: dict[str, int]) -> list[str]:
    """Lists the references to records that do not exist, and the numbers below their bound."""
    problems = []
    for record in records:
        kind = record.__class__
        references, bounds = _marks_of(kind)
        for name, table in references:
            value = getattr(record, name)
            for number in value if type(value) is tuple else (value,):
                if number is not None and not 0 <= number < sizes[table]:
                    problems.append(f"{kind.__name__}.{name} is unknown {table[:-1]} {number}")
        for name, bound in bounds:
            if getattr(record, name) < bound:
                problems.append(f"{kind.__name__}.{name} is {getattr(record, name)}")
    return problems


@cache
def _marks_of(record: type) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, int], ...]]:
    return tuple(references_of(record).items()), tuple(bounds_of(record).items())


def _records(trace: Trace) -> Iterator[Any]:
    """Yields the trace and every record in it, except the spans of sites."""
    waiting: list[Any] = [trace]
    while waiting:
        record = waiting.pop()
        yield record
        for name in _fields_with_records(record.__class__):
            value = getattr(record, name)
            if type(value) is tuple:
                waiting.extend([item for item in value if is_dataclass(item)])
            elif value is not None:
                waiting.append(value)


@cache
def _fields_with_records(record: Any) -> tuple[str, ...]:
    hints = get_type_hints(record)
    return tuple(name for name, hint in hints.items() if hint is not Span and _names_record(hint))


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
