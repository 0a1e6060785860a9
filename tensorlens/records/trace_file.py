"""Saves a `Trace` as JSON, with its source text, and loads it again, so that it can be viewed without torch.

What further runs showed (`--try`, `--fix`) can't be derived from the trace: the findings are saved with it.

The codec follows the type hints of the records: a new field needs no change here, and a field that an older file does
not have takes its default. A file is not trusted: loading one that is not a sound trace raises a `TraceFileError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from tensorlens.errors import TraceFileError
from tensorlens.records.invariants import validate
from tensorlens.records.model import Event, Trace
from tensorlens.records.report import Diagnostic, Tried

FORMAT = "tensorlens.trace"
VERSION = 1
MAX_BYTES = 256 * 1024 * 1024  # twice the trace of a run that keeps 100,000 tensors, on as many lines
_RECORDS = 500  # in a piece
_KINDS = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class Trials:
    """The findings of a trace after further runs, with what these showed."""

    diagnostics: tuple[Diagnostic, ...]
    tried: Tried | None = None


def dumps(trace: Trace, trials: Trials | None = None) -> str:
    """Returns the trace as one JSON object, with its findings if further runs were made."""
    return "".join(pieces(trace, trials))


def pieces(trace: Trace, trials: Trials | None = None) -> Iterator[str]:
    """Yields the pieces of what `dumps` returns. A trace as one text, or as dictionaries, takes much memory."""
    yield f'{{"format": "{FORMAT}", "version": {VERSION}, "trace": {{'
    for number, field in enumerate(fields(trace)):
        yield f'{", " if number else ""}"{field.name}": '
        value = getattr(trace, field.name)
        if isinstance(value, tuple):
            yield "["
            for first in range(0, len(value), _RECORDS):
                records = ", ".join(json.dumps(encoded(item)) for item in value[first : first + _RECORDS])
                yield f"{', ' if first else ''}{records}"
            yield "]"
        else:
            yield json.dumps(encoded(value))
    yield "}"
    if trials is not None:
        yield f', "trials": {json.dumps(encoded(trials))}'
    yield "}\n"


def save(trace: Trace, path: Path) -> None:
    """Writes the trace to a file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(pieces(trace))


def load(path: Path) -> Trace:
    """Reads the trace in a file, as `load_with_trials` does."""
    return load_with_trials(path)[0]


def load_with_trials(path: Path) -> tuple[Trace, Trials | None]:
    """Reads the trace in a file, and its findings if further runs were made.

    Raises:
        TraceFileError: the file can't be read, is no trace, is of another version, or is damaged.
    """
    data = read_bytes(path)
    try:
        return _loads(data)
    except TraceFileError as error:
        raise TraceFileError(f"{path} {error}") from None


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file.

    Raises:
        TraceFileError: it can't be read, or is too large.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TraceFileError(f"{path} is too large for a trace")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: no path has a null character
        raise TraceFileError(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None


def loads(text: str) -> Trace:
    """Reads the trace in a text.

    Raises:
        TraceFileError: the text is no trace, is of another version, or is damaged.
    """
    return _loads(text.encode("utf-8", "surrogatepass"))[0]


def _loads(data: bytes) -> tuple[Trace, Trials | None]:
    from tensorlens.records.trace_decoder import records_of, shown  # not above: a run of a script reads no file

    trace, trials = records_of(data, (FORMAT, VERSION), Trials | None)
    problems = validate(trace)
    if problems:
        raise TraceFileError(f"is a damaged trace: {shown(problems[0])}")
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


def encoded(value: Any) -> Any:
    """Returns a record as what JSON has: dicts, lists, texts and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        record = {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **record} if type(value).__name__ in _KINDS else record
    if isinstance(value, tuple | list):
        return [encoded(item) for item in value]
    if isinstance(value, dict):
        return {key: encoded(item) for key, item in value.items()}
    return value
