"""Turns the JSON of a saved trace into records, as their type hints say. Nothing in the JSON is trusted.

`msgspec` makes records of the bytes without dicts in between, which takes a third of the time and of the memory. JSON
that only Python reads (`NaN`, half a surrogate pair) is read by Python first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec

from tensorlens.errors import TraceFileError
from tensorlens.records.model import Event, Trace

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Event)}
_CALL = b'{"kind": "Call", '  # as `json.dumps` begins nearly every event
_Part = Callable[[Any, Any], Any]  # makes a value of a type from a part of the file


class _File(msgspec.Struct):
    """The parts of a saved trace, as JSON."""

    format: object = None
    version: object = None
    trace: msgspec.Raw = msgspec.Raw(b"null")
    trials: msgspec.Raw = msgspec.Raw(b"null")


class _Kind(msgspec.Struct):
    kind: str


def records_of(data: bytes, file: tuple[str, int], trials: Any) -> tuple[Trace, Any]:
    """Returns the trace, and what is saved beside it as the type `trials`. `file` is the format and the version.

    Raises:
        TraceFileError: the data is no trace, is of another version, or is damaged.
    """
    try:
        parts = _json(_File).decode(data)
        if (parts.format, parts.version) == file:
            return _trace(parts.trace, msgspec.Raw, _decoded), _decoded(parts.trials, trials)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # Python may read it, or says what is wrong
    return _read_by_python(data, file, trials)


def decoded_json(data: bytes) -> Any:
    """Returns what the JSON of a file says.

    Raises:
        TraceFileError: it is no JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _json_of_python(data)


def trace_in(read: Any, file: tuple[str, int]) -> Trace:
    """Returns the trace in a file that has been read from JSON. `file` is the format and the version.

    Raises:
        TraceFileError: it is no trace, is of another version, or is damaged.
    """
    return _made(read, file, Any)[0]


def event_in(record: Any) -> Any:
    """Returns an event that has been read from JSON.

    Raises:
        msgspec.ValidationError: it is none.
    """
    if not isinstance(record, dict):
        raise msgspec.ValidationError("an event that is no record")
    return _event(record)


def converted(part: Any, kind: Any) -> Any:
    """Returns a part of what Python has read as a record of the type `kind`.

    Raises:
        msgspec.ValidationError: it is none.
    """
    try:
        return msgspec.convert(part, kind)
    except UnicodeEncodeError:  # half a surrogate pair where another type is due: msgspec can't encode the text
        raise msgspec.ValidationError("a text that is no Unicode, in place of another value") from None


def _read_by_python(data: bytes, file: tuple[str, int], trials: Any) -> tuple[Trace, Any]:
    return _made(_json_of_python(data), file, trials)


def _json_of_python(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise TraceFileError("is not a saved trace: it is not JSON, or cut short") from None


def _made(read: Any, file: tuple[str, int], trials: Any) -> tuple[Trace, Any]:
    if isinstance(read, dict) and read.get("format") == "tensorlens.ranks":
        raise TraceFileError("has the traces of several ranks: tensorlens view shows it")
    if not isinstance(read, dict) or read.get("format") != file[0]:
        raise TraceFileError("is not a saved trace of tensorlens")
    if read.get("version") != file[1]:
        raise TraceFileError(f"is a trace of version {shown(read.get('version'))}; this tensorlens reads {file[1]}")
    try:
        return _trace(read.get("trace"), dict, converted), converted(read.get("trials"), trials)
    except (msgspec.ValidationError, RecursionError) as error:
        raise TraceFileError(f"is a damaged trace: {shown(error)}") from None


def shown(value: object) -> str:
    """Returns a value of the file, made safe and short enough for one line."""
    return str(value)[:120].encode("unicode_escape").decode("ascii")


def _trace(part: Any, event: Any, decoded: _Part) -> Trace:
    """Makes a trace whose events are of the type `event` at first."""
    read = decoded(part, _trace_with_events_of(event))
    values = {each.name: getattr(read, each.name) for each in fields(Trace)}
    values["events"] = tuple(_events_of_json(read.events) if event is msgspec.Raw else map(_event, read.events))
    return Trace(**values)


@cache
def _trace_with_events_of(event: Any) -> type:
    """Returns a record like `Trace`, whose events are not read yet: their type depends on what they contain."""
    hints = {**get_type_hints(Trace), "events": list[event]}
    columns: list[tuple[str, Any, Any]] = []
    for each in fields(Trace):
        if each.default_factory is MISSING:
            columns.append((each.name, hints[each.name], field(default=each.default)))
        else:
            columns.append((each.name, hints[each.name], field(default_factory=each.default_factory)))
    return make_dataclass("_Trace", columns)


def _events_of_json(events: Iterable[msgspec.Raw]) -> Iterable[Any]:
    call, size = _json(_KINDS["Call"]).decode, len(_CALL)
    kind = _json(_Kind).decode
    for event in events:
        text = bytes(event)
        yield call(text) if text[:size] == _CALL else _json(_kind(kind(text).kind)).decode(text)


def _event(event: dict[str, Any]) -> Any:
    return converted(event, _kind(event.get("kind")))


def _kind(name: object) -> Any:
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise msgspec.ValidationError("an event of an unknown kind")
    return kind


def _decoded(part: Any, kind: Any) -> Any:
    return _json(kind).decode(part)


@cache
def _json(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
