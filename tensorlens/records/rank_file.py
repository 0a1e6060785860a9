"""Saves the traces of all ranks of a distributed run in one file, and loads them again.

The first rank is saved whole. Another one is saved as its differences from a rank that is saved whole, if it did
nearly the same: replicas differ in numbers, and in little else. A file is not trusted, as in `trace_file`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from operator import eq
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from tensorlens.errors import TraceFileError
from tensorlens.records.callbacks import Callbacks
from tensorlens.records.invariants import validate
from tensorlens.records.model import End, Event, Trace
from tensorlens.records.observations import Observations
from tensorlens.records.trace_decoder import converted, decoded_json, event_in, shown, trace_in
from tensorlens.records.trace_file import FORMAT as TRACE
from tensorlens.records.trace_file import VERSION as TRACE_VERSION
from tensorlens.records.trace_file import encoded, pieces, read_bytes

FORMAT = "tensorlens.ranks"
VERSION = 1
MAX_WORLD = 100_000  # ranks of a run
_MAX_EVENTS = 50_000_000  # of all ranks together: a small file can repeat a large trace
_MAX_WHOLE = 8  # ranks that are saved whole
_BEGINNING = re.compile(rb'^\s*\{[^{\[]{0,200}?"format"\s*:\s*"tensorlens\.ranks"')
_COMPARED_BY_FIELD = (Observations, Callbacks, End)


class _Records(msgspec.Struct):
    """The changes of a tuple of records: its new length, and the records at some positions."""

    length: int
    but: list[tuple[int, Any]]


def has_ranks(path: Path) -> bool:
    """Returns whether a file says that it has the traces of several ranks."""
    try:
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(400)) is not None
    except (OSError, ValueError):
        return False  # reading it as a trace says why


def save_ranks(traces: Iterable[Trace], path: Path) -> None:
    """Writes the traces of the ranks of one run to a file.

    Raises:
        OSError: it can't be written.
    """
    with path.open("w", encoding="utf-8") as file:
        file.writelines(pieces_of_ranks(traces))


def pieces_of_ranks(traces: Iterable[Trace]) -> Iterator[str]:
    """Yields the pieces of the file as text."""
    yield f'{{"format": "{FORMAT}", "version": {VERSION}, "ranks": [\n'
    whole: dict[int, Trace] = {}
    for position, trace in enumerate(traces):
        if position:
            yield ",\n"
        base = min(whole, key=lambda each: _distance(whole[each], trace), default=None)
        if base is None or (len(whole) < _MAX_WHOLE and _distance(whole[base], trace) > len(trace.events) // 2):
            whole[position] = trace
            yield from pieces(trace)
        else:
            yield json.dumps({"like": base, "changed": _changes(whole[base], trace)})
    yield "]}\n"


def load_ranks(path: Path) -> tuple[Trace, ...]:
    """Reads the traces of a file.

    Raises:
        TraceFileError: the file can't be read, has no traces of ranks, is of another version, or is damaged.
    """
    data = read_bytes(path)
    try:
        return tuple(_loaded(data))
    except TraceFileError as error:
        raise TraceFileError(f"{path} {error}") from None


def shared(traces: Iterable[Trace]) -> Iterator[Trace]:
    """Yields traces that have the records of the first one where theirs are equal: many ranks then fit into memory."""
    base: Trace | None = None
    for trace in traces:
        base = base or trace
        yield trace if trace is base else _sharing(base, trace)


def _sharing(base: Any, value: Any) -> Any:
    kind: Any = type(value)
    changes: dict[str, Any] = {}
    for name in (field.name for field in fields(value)):
        one, other = getattr(base, name), getattr(value, name)
        if one == other:
            changes[name] = one
        elif isinstance(other, _COMPARED_BY_FIELD):
            changes[name] = _sharing(one, other)
        elif _is_table(kind, name):
            begun = (mine if mine == its else its for mine, its in zip(one, other, strict=False))
            changes[name] = (*begun, *other[len(one) :])
    return replace(value, **changes)


def why_not_one_run(traces: Sequence[tuple[str, Trace]]) -> str:
    """Returns why traces, each with the name of its file, can't be of the ranks of one run; "" if they can."""
    seen: dict[int, str] = {}
    base, first = traces[0]
    for name, trace in traces:
        rank, lead = trace.script.rank, first.script.rank
        if rank is None or lead is None:
            return f"{name if rank is None else base} is not the trace of a rank of a distributed run"
        if not 0 <= rank.number < rank.world <= MAX_WORLD:
            return f"{name} is damaged: it can't be of rank {rank.number} of {rank.world}"
        if rank.number in seen:
            return f"{seen[rank.number]} and {name} are both of rank {rank.number}"
        if difference := _of_two_runs(first, trace):
            return f"{base} and {name} are of different runs: {difference}"
        seen[rank.number] = name
    return ""


def _of_two_runs(one: Trace, other: Trace) -> str:
    first, second = one.script.rank, other.script.rank
    assert first is not None
    assert second is not None
    if first.world != second.world:
        return "the number of ranks differs"
    if first.run != second.run and first.run and second.run:
        return "their launcher gave them other numbers"
    shared = one.sources.keys() & other.sources.keys()
    changed = [file for file in sorted(shared) if one.sources[file] != other.sources[file]]
    if changed and first.host == second.host:
        return f"{Path(changed[0]).name} was changed between them"
    return ""


# --- what differs from a rank that is saved whole ---------------------------------------------------------------------


def _distance(base: Trace, trace: Trace) -> int:
    same = sum(map(eq, base.events, trace.events))
    return int(max(len(base.events), len(trace.events)) - same)


def _changes(base: Any, value: Any) -> dict[str, Any]:
    """Returns the fields in which two records differ, for `_changed` to apply."""
    changes = {}
    for name in (field.name for field in fields(value)):
        one, other = getattr(base, name), getattr(value, name)
        if one == other:
            continue
        if isinstance(other, _COMPARED_BY_FIELD):
            changes[name] = _changes(one, other)
        elif _is_table(type(value), name):
            common = len(one)
            but = [[place, encoded(each)] for place, each in enumerate(other) if place >= common or one[place] != each]
            changes[name] = {"length": len(other), "but": but}
        else:
            changes[name] = encoded(other)
    return changes


def _loaded(data: bytes) -> Iterator[Trace]:
    read = decoded_json(data)
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise TraceFileError("has no traces of ranks")
    if read.get("version") != VERSION:
        version = shown(read.get("version"))
        raise TraceFileError(f"has traces of ranks in version {version}; this tensorlens reads {VERSION}")
    items = read.get("ranks")
    if not isinstance(items, list) or not items:
        raise TraceFileError("is damaged: it has no ranks")
    whole: dict[int, Trace] = {}
    events = 0
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise TraceFileError("is damaged: a rank is no trace")
        if "like" in item:
            trace = _like(whole, item)
        else:
            trace = whole[position] = trace_in(item, (TRACE, TRACE_VERSION))
        events += len(trace.events)
        if events > _MAX_EVENTS:
            raise TraceFileError("is too large: its ranks have too many events")
        if problems := validate(trace):
            raise TraceFileError(f"is a damaged trace: {shown(problems[0])}")
        yield trace


def _like(whole: Mapping[int, Trace], item: Mapping[str, Any]) -> Trace:
    """Returns the trace of a rank that is saved as its differences from another one."""
    base = item["like"]
    if not isinstance(base, int) or base not in whole:
        raise TraceFileError("is damaged: a rank is like one that is not there")
    try:
        changed: Trace = _changed(whole[base], item.get("changed"))
    except (msgspec.ValidationError, RecursionError) as error:
        raise TraceFileError(f"is a damaged trace: {shown(error)}") from None
    return changed


def _changed(base: Any, changes: object) -> Any:
    """Returns a record with the changes of `_changes`."""
    kind: Any = type(base)
    hints = _hints(kind)
    if not isinstance(changes, dict) or not changes.keys() <= hints.keys():
        raise msgspec.ValidationError("a change of what a trace does not have")
    values = {}
    for name, change in changes.items():
        old, hint = getattr(base, name), hints[name]
        if isinstance(old, _COMPARED_BY_FIELD):
            values[name] = _changed(old, change)
        elif _is_table(kind, name):
            values[name] = _changed_records(old, change, get_args(hint)[0])
        else:
            values[name] = converted(change, hint)
    return replace(base, **values)


def _changed_records(old: tuple[Any, ...], change: object, kind: Any) -> tuple[Any, ...]:
    pairs = converted(change, _Records)
    new: list[Any] = list(old[: max(pairs.length, 0)])
    for place, record in pairs.but:
        value = event_in(record) if kind == Event else converted(record, kind)
        if 0 <= place < len(new):
            new[place] = value
        elif place == len(new):
            new.append(value)
        else:
            raise msgspec.ValidationError("a change of what a trace does not have")
    if len(new) != pairs.length:
        raise msgspec.ValidationError("a change of what a trace does not have")
    return tuple(new)


def _is_table(kind: Any, name: str) -> bool:
    """Returns whether a field has any number of records, all of one type."""
    hint = _hints(kind)[name]
    return get_origin(hint) is tuple and get_args(hint)[1:] == (Ellipsis,)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
