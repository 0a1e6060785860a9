"""Defines types of fields that `invariants` checks: references to a table of the trace, bounds, and equal lengths.

A field that refers to tensors is declared as `tensor: TensorId`, or as `tensors: tuple[TensorId, ...]`. That is all:
`invariants.validate` checks its values, and `journal.trace_builder` turns the tracer's ids into those of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Position:
    """Marks a number that is a position in a table of the trace."""

    table: str


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Marks a number that is never smaller than `bound`."""

    bound: int


@dataclass(frozen=True, slots=True)
class LongAs:
    """Marks a tuple that has one item for each item of the field `other`."""

    other: str


SiteId = Annotated[int, Position("sites")]
TensorId = Annotated[int, Position("tensors")]
StorageId = Annotated[int, Position("storages")]
FailureId = Annotated[int, Position("failures")]
FunctionId = Annotated[int, Position("functions")]
RegistrationId = Annotated[int, Position("registrations")]
OverwriteId = Annotated[int, Position("overwrites")]

NonNegative = Annotated[int, AtLeast(0)]
Positive = Annotated[int, AtLeast(1)]


@cache
def references_of(record: type) -> dict[str, str]:
    """Maps the fields of a record that refer to a table to the name of the table."""
    return {name: mark.table for name, mark in _marked(record) if isinstance(mark, Position)}


@cache
def bounds_of(record: type) -> dict[str, int]:
    """Maps the fields of a record that have a lower bound to the bound."""
    return {name: mark.bound for name, mark in _marked(record) if isinstance(mark, AtLeast)}


@cache
def lengths_of(record: type) -> dict[str, str]:
    """Maps the tuples of a record that are as long as another one to the name of that one."""
    return {name: mark.other for name, mark in _marked(record) if isinstance(mark, LongAs)}


@cache
def holders_of(record: type) -> frozenset[str]:
    """Returns the fields whose values can be records, or have records in them."""
    return frozenset(name for name, hint in _hints(record).items() if _can_hold(hint))


def _can_hold(hint: Any) -> bool:
    return is_dataclass(hint) or hint in (Any, object, tuple) or any(map(_can_hold, get_args(hint)))


@cache
def _hints(record: type) -> dict[str, Any]:
    return get_type_hints(record, include_extras=True)


def _marked(record: type) -> Iterator[tuple[str, Any]]:
    """Yields (name, mark) of each marked field."""
    for name, hint in _hints(record).items():
        yield from ((name, mark) for mark in _marks(hint))


def _marks(hint: Any) -> Iterator[Any]:
    """Yields the marks in a type hint: of the type itself, or of the items of a tuple or union."""
    yield from getattr(hint, "__metadata__", ())
    for argument in get_args(hint):
        yield from _marks(argument)
