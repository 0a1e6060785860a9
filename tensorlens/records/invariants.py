"""Checks the invariants of a `Trace` that comes from a file, or from a run that was cut short."""

from __future__ import annotations

from collections.abc import Iterator
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
    for record in _records(trace):
        problems += _dangling_references(record, sizes)
        problems += _too_small(record)
    for site in trace.sites:
        problems += _too_small(site.span)
    for before, event in pairwise(trace.events):
        if before.index >= event.index:
            problems.append(f"event {event.index} comes after event {before.index}")
    for event in trace.events:
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


def _dangling_references(record: Any, sizes: dict[str, int]) -> list[str]:
    problems = []
    for name, table in references_of(record.__class__).items():
        value = getattr(record, name)
        for number in value if type(value) is tuple else (value,):
            if number is not None and not 0 <= number < sizes[table]:
                problems.append(f"{type(record).__name__}.{name} is unknown {table[:-1]} {number}")
    return problems


def _records(trace: Trace) -> Iterator[Any]:
    """Yields the trace and every record in it, except places in the source."""
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


def _too_small(record: Any) -> list[str]:
    bounds = bounds_of(record.__class__).items()
    return [
        f"{type(record).__name__}.{name} is {getattr(record, name)}"
        for name, bound in bounds
        if getattr(record, name) < bound
    ]


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
