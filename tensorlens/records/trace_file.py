"""Saves a `Trace` as JSON, with its source text, and loads it again, so that it can be viewed without torch.

What further runs showed (`--try`, `--fix`) can't be derived from the trace: the findings are saved with it.

The codec follows the type hints of the records: a new field needs no change here, and a field that an older file does
not have takes its default. A file is not trusted: loading one that is not a sound trace raises a `TraceFileError`.
"""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tensorlens.errors import TraceFileError
from tensorlens.records.invariants import validate
from tensorlens.records.model import Event, Trace
from tensorlens.records.record_code import Decoder, decoder
from tensorlens.records.report import Diagnostic, Tried

FORMAT = "tensorlens.trace"
VERSION = 1
MAX_BYTES = 256 * 1024 * 1024  # twice the trace of a run that keeps 100,000 tensors, on as many lines
_LARGEST = 2**64  # no number of a trace is larger: sequence numbers have 64 bits
_KINDS = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class Trials:
    """The findings of a trace after further runs, with what these showed."""

    diagnostics: tuple[Diagnostic, ...]
    tried: Tried | None = None


def dumps(trace: Trace, trials: Trials | None = None) -> str:
    """Returns the trace as one JSON object, with its findings if further runs were made."""
    parts = [f'{{"format": "{FORMAT}", "version": {VERSION}, "trace": {{']
    for number, field in enumerate(fields(trace)):
        parts.append(f'{", " if number else ""}"{field.name}": ')
        value = getattr(trace, field.name)
        if isinstance(value, tuple):  # a table: one record at a time, for all of them as dictionaries take much memory
            parts += ["[", ", ".join(json.dumps(_encode(item)) for item in value), "]"]
        else:
            parts.append(json.dumps(_encode(value)))
    parts.append("}")
    if trials is not None:
        parts += [', "trials": ', json.dumps(_encode(trials))]
    return "".join((*parts, "}\n"))


def save(trace: Trace, path: Path) -> None:
    """Writes the trace to a file."""
    path.write_text(dumps(trace), encoding="utf-8")


def load(path: Path) -> Trace:
    """Reads the trace in a file, as `load_with_trials` does."""
    return load_with_trials(path)[0]


def load_with_trials(path: Path) -> tuple[Trace, Trials | None]:
    """Reads the trace in a file, and its findings if further runs were made.

    Raises:
        TraceFileError: the file can't be read, is no trace, is of another version, or is damaged.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TraceFileError(f"{path} is too large for a trace")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TraceFileError(f"can't read {path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    try:
        return _loads(text)
    except TraceFileError as error:
        raise TraceFileError(f"{path} {error}") from None


def loads(text: str) -> Trace:
    """Reads the trace in a text.

    Raises:
        TraceFileError: the text is no trace, is of another version, or is damaged.
    """
    return _loads(text)[0]


def _loads(text: str) -> tuple[Trace, Trials | None]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise TraceFileError("is not a saved trace: it is not JSON, or cut short") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise TraceFileError("is not a saved trace of tensorlens")
    if data.get("version") != VERSION:
        raise TraceFileError(f"is a trace of version {_shown(data.get('version'))}; this tensorlens reads {VERSION}")
    try:
        trace: Trace = _decoder(Trace)(data.get("trace"))
        trials: Trials | None = _decoder(Trials | None)(data.get("trials"))
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise TraceFileError(f"is a damaged trace: {_shown(error)}") from None
    problems = validate(trace)
    if problems:
        raise TraceFileError(f"is a damaged trace: {_shown(problems[0])}")
    if trials is not None and not _fits(trials, trace):
        raise TraceFileError("is a damaged trace: a finding is about what the trace does not have")
    return trace, trials


def _fits(trials: Trials, trace: Trace) -> bool:
    """Returns whether the findings are about files and calls of the trace."""
    labels = [label for each in trials.diagnostics for label in each.labels]
    edits = [edit.span for each in trials.diagnostics for fix in each.fixes for edit in fix.edits]
    sites, events = range(len(trace.sites)), {event.index for event in trace.events}
    return all(span.file in trace.sources for span in edits) and all(
        (label.site is None or label.site in sites) and (label.event is None or label.event in events)
        for label in labels
    )


def _shown(value: object) -> str:
    """Returns a value of the file, made safe and short enough for one line."""
    return str(value)[:120].encode("unicode_escape").decode("ascii")


def _encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        encoded = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **encoded} if type(value).__name__ in _KINDS else encoded
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return value


@cache
def _decoder(hint: Any) -> Decoder:
    """Returns the function that turns JSON into a value of the type `hint`, or raises TypeError."""
    if hint == Event:
        return _event
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _optional(_decoder(inner))
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin is dict:
        return _mapping(_decoder(arguments[1]))
    if is_dataclass(hint):
        return _record(hint)
    return _plain(hint)


def _event(value: Any) -> Any:
    kind = _KINDS.get(value.pop("kind", "")) if isinstance(value, dict) else None
    if kind is None:
        raise TypeError("an event of an unknown kind")
    return _decoder(kind)(value)


def _optional(decode: Decoder) -> Decoder:
    return lambda value: None if value is None else decode(value)


def _one_of(allowed: tuple[Any, ...]) -> Decoder:
    def decode(value: Any) -> Any:
        if not any(value == item and type(value) is type(item) for item in allowed):
            raise TypeError(f"{value!r} is none of {allowed}")
        return value

    return decode


def _tuple(arguments: tuple[Any, ...]) -> Decoder:
    decoders = tuple(_decoder(hint) for hint in arguments if hint is not Ellipsis)
    each = decoders[0]

    def several(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise TypeError("a list is missing")
        return tuple([each(item) for item in value]) if value else ()

    def decode(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(decoders):
            raise TypeError(f"a list of {len(decoders)} is missing")
        return tuple([one(item) for one, item in zip(decoders, value, strict=True)])

    return several if arguments[1:] == (Ellipsis,) else decode


def _mapping(decode: Decoder) -> Decoder:
    def mapping(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise TypeError("a mapping is missing")
        return {key: decode(item) for key, item in value.items()}

    return mapping


def _record(kind: Any) -> Decoder:
    hints = get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}

    def decode(value: Any) -> Any:
        """Reads a record of another version."""
        if not isinstance(value, dict):
            raise TypeError(f"a {kind.__name__} is missing")
        missing = needed - value.keys()
        if missing:
            raise TypeError(f"a {kind.__name__} without {sorted(missing)[0]}")
        return kind(**{name: decode_(value[name]) for name, decode_ in decoders.items() if name in value})

    checks = {name: (_check(hints[name]), decode_) for name, decode_ in decoders.items()}
    return decoder(kind, checks, decode)


def _check(hint: Any) -> str:
    """Returns the source lines that check a value `{v}` of the type `hint`, where `{d}` is its decoder.

    They call the decoder only for what is not plain and sound at first sight.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is int:
        return f"if type({{v}}) is not int or not -{_LARGEST} < {{v}} < {_LARGEST}: {{d}}({{v}})"
    if hint in (str, bool):
        return f"if type({{v}}) is not {hint.__name__}: {{d}}({{v}})"
    if origin in (Union, types.UnionType) and len(arguments) == 2 and arguments[1] is type(None):
        return f"if {{v}} is not None:\n    {_check(arguments[0])}"
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return "{v} = {d}({v}) if {v} != [] else ()"
    return "{v} = {d}({v})"


def _plain(kind: Any) -> Decoder:
    if kind is int:
        return _integer
    if kind is object:
        return lambda value: value

    def decode(value: Any) -> Any:
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise TypeError(f"{value!r} is not {kind.__name__}")
        return value

    return decode


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not int")
    if not -_LARGEST < value < _LARGEST:
        raise TypeError("a number is too large")
    return value
